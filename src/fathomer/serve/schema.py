"""The JSON schema of requests and responses."""

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, create_model

from fathomer.serve.limits import Limits


class PredictRequest(BaseModel):
    """Texts to classify."""

    model_config = ConfigDict(strict=True, extra="forbid")

    texts: list[str]
    depths: bool = Field(False, description="Include the words of each text with their depths.")
    contributions: bool = Field(
        False, description="Include the words with how much each supports the answer."
    )
    max_depth: int | None = Field(None, description="The most steps that a word may take.")
    depth_budget: float | None = Field(
        None, description="The average number of steps of a word, in a model with supervised depth."
    )


class WordAnswer(BaseModel):
    """A word with its depth and its position in the text, in characters."""

    text: str
    start: int
    end: int
    depth: int = Field(description="0 if words have no depth in this model.")
    contribution: float | None = Field(
        None,
        description="Log odds of the most probable label with the word minus without it; "
        "only if contributions were requested.",
    )


class TextAnswer(BaseModel):
    """The prediction for one text."""

    label: str | None = Field(description="Null if a multi-label model assigns no label.")
    probabilities: dict[str, float]
    truncated: bool = Field(description="Whether the text was longer than the model reads.")
    labels: list[str] | None = Field(None, description="Only for multi-label models.")
    words: list[WordAnswer] | None = Field(
        None, description="Only if depths or contributions were requested."
    )


class PredictAnswer(BaseModel):
    """The predictions for all texts, in order."""

    predictions: list[TextAnswer]


class ModelAnswer(BaseModel):
    """The model and the limits of the service."""

    labels: list[str]
    max_depth: int | None = Field(description="Null if words have no depth in this model.")
    depth_budget: float | None = Field(
        description="Average depth if a request sets none; null if the model has no depth budgets."
    )
    size: dict[str, int]
    metrics: dict[str, Any]
    versions: dict[str, str]
    limits: dict[str, float]


class HealthAnswer(BaseModel):
    """The state of the service."""

    status: str


class ErrorContent(BaseModel):
    """What was wrong; if ``code`` names a limit, ``limit`` is its value."""

    code: str
    message: str
    limit: float | None = None


class ErrorAnswer(BaseModel):
    """The response to a request that was not answered."""

    error: ErrorContent


def _integer(value: Any) -> Any:
    """Convert 2.0 to 2: JSON does not distinguish them."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _float(value: Any) -> Any:
    """Convert 2 to 2.0, but not a boolean."""
    return float(value) if type(value) is int else value


def request_model(
    limits: Limits, *, max_depth: int, has_budgets: bool = False
) -> type[PredictRequest]:
    """Return the schema of a request with the limits and the depth of a model built in."""
    text = Annotated[str, Field(max_length=limits.characters_per_text)]
    depth = Annotated[int, Field(ge=1, le=max_depth), BeforeValidator(_integer)]
    number = Annotated[float, Field(ge=1, le=max_depth), BeforeValidator(_float)]
    budget: Any = number | None if has_budgets else None
    fields = PredictRequest.model_fields
    return create_model(
        "PredictRequest",
        __base__=PredictRequest,
        __doc__=PredictRequest.__doc__,
        texts=(Annotated[list[text], Field(max_length=limits.texts_per_request)], ...),
        max_depth=(depth | None, Field(None, description=fields["max_depth"].description)),
        depth_budget=(budget, Field(None, description=fields["depth_budget"].description)),
    )
