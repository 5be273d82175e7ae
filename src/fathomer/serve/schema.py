"""What goes over the wire: the shapes of requests and answers."""

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, create_model

from fathomer.serve.limits import Limits


class PredictRequest(BaseModel):
    """Ask for the labels of texts."""

    model_config = ConfigDict(strict=True, extra="forbid")

    texts: list[str]
    depths: bool = Field(False, description="Add the words of each text and their depths.")
    max_depth: int | None = Field(None, description="Let no word take more steps than this.")


class WordAnswer(BaseModel):
    """Show a word, its place in the text in characters, and how deep it was read."""

    text: str
    start: int
    end: int
    depth: int


class TextAnswer(BaseModel):
    """Answer one text."""

    label: str | None = Field(description="Nothing if the model may give none and gives none.")
    probabilities: dict[str, float]
    truncated: bool = Field(description="Whether the text was longer than the model reads.")
    labels: list[str] | None = Field(None, description="Only if the model may give several.")
    words: list[WordAnswer] | None = Field(None, description="Only when depths were asked for.")


class PredictAnswer(BaseModel):
    """Answer all texts, in order."""

    predictions: list[TextAnswer]


class ModelAnswer(BaseModel):
    """Describe the model and what the service allows."""

    labels: list[str]
    max_depth: int | None = Field(description="Nothing if words have no depth in this model.")
    size: dict[str, int]
    metrics: dict[str, Any]
    versions: dict[str, str]
    limits: dict[str, float]


class HealthAnswer(BaseModel):
    """Tell how the service is."""

    status: str


class ErrorContent(BaseModel):
    """Say what was wrong; ``limit`` is the value of the limit that ``code`` names."""

    code: str
    message: str
    limit: float | None = None


class ErrorAnswer(BaseModel):
    """Refuse a request."""

    error: ErrorContent


def _whole(value: Any) -> Any:
    """Take 2.0 for the integer that it is in JSON."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def request_model(limits: Limits, *, max_depth: int) -> type[PredictRequest]:
    """Bind the shape of a request to the limits and to the model's depth."""
    text = Annotated[str, Field(max_length=limits.characters_per_text)]
    depth = Annotated[int, Field(ge=1, le=max_depth), BeforeValidator(_whole)]
    fields = PredictRequest.model_fields
    return create_model(
        "PredictRequest",
        __base__=PredictRequest,
        __doc__=PredictRequest.__doc__,
        texts=(Annotated[list[text], Field(max_length=limits.texts_per_request)], ...),
        max_depth=(depth | None, Field(None, description=fields["max_depth"].description)),
    )
