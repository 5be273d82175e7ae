"""Reading a prediction request: its body, its JSON and the words of its texts, within the limits."""

import asyncio

from pydantic import ValidationError
from pydantic_core import from_json
from starlette.requests import ClientDisconnect, Request

from fathomer.contributions import words_read
from fathomer.errors import DepthError, did_you_mean
from fathomer.predictor import Predictor
from fathomer.serve import schema
from fathomer.serve.errors import ApiError, limit_error, validation_error
from fathomer.serve.limits import Limits
from fathomer.text.tokenizer import Words

_DISCARDED_BODIES = 8
"""An oversized body is read and discarded up to this multiple of the limit, because many clients
read no response before they have sent everything. After that the connection is closed."""
_INLINE_CHARACTERS = 10_000
"""Longer requests are tokenised in a thread, so other requests are not blocked."""


async def read_body(request: Request, limits: Limits) -> bytes:
    """Read the body, whether or not its length was announced."""
    close = {"connection": "close"}
    try:
        async with asyncio.timeout(limits.body_seconds):
            body = await _read_up_to(request, limits.body_bytes)
    except TimeoutError:
        message = f"The request did not arrive within {limits.body_seconds:g} seconds."
        raise limit_error(limits, "body_seconds", message, status=408, headers=close) from None
    except ClientDisconnect:
        raise ApiError(499, "disconnected", "The client disconnected.") from None
    if body is None:
        message = f"The body is larger than {limits.body_bytes} bytes."
        raise limit_error(limits, "body_bytes", message, status=413, headers=close)
    return body


async def _read_up_to(request: Request, max_bytes: int) -> bytes | None:
    """Return the body, or None if it is larger than ``max_bytes``."""
    chunks: list[bytes] = []
    size = 0
    async for chunk in request.stream():
        size += len(chunk)
        if size <= max_bytes:
            chunks.append(chunk)
        else:
            chunks.clear()
        if size > _DISCARDED_BODIES * max_bytes:
            break
    return b"".join(chunks) if size <= max_bytes else None


class RequestParser:
    """Turns the body of a prediction request into texts and their words."""

    def __init__(self, predictor: Predictor, limits: Limits) -> None:
        has_budgets = predictor.artifact.depth_budgets is not None
        self.model = schema.request_model(
            limits, max_depth=predictor.max_depth, has_budgets=has_budgets
        )
        self._predictor = predictor
        self._limits = limits

    def parse(self, body: bytes) -> schema.PredictRequest:
        """Return the validated content of a body."""
        try:
            content = from_json(body)
        except ValueError as error:
            raise ApiError(422, "invalid", f"Invalid JSON: {error}") from None
        if isinstance(content, dict):
            self._check_keys(content)
            self._check_budget(content)
        try:
            parsed = self.model.model_validate(content)
        except ValidationError as error:
            raise validation_error(error, self._limits) from None
        if not self._predictor.knows_depth and (parsed.depths or parsed.max_depth):
            raise ApiError(422, "no_depth", "Words have no depth in this model.")
        return parsed

    def _check_keys(self, content: dict[str, object]) -> None:
        """Reject the first unknown key; pydantic would build an error for each of them."""
        known = self.model.model_fields
        for key in content:
            if key not in known:
                hint = did_you_mean(key[:100], known)
                raise ApiError(422, "invalid", f"{key[:100]}: no such key; {hint}")

    def _check_budget(self, content: dict[str, object]) -> None:
        """Reject a depth budget if the model has none; the schema then allows only null."""
        if content.get("depth_budget") is not None and not self._predictor.artifact.depth_budgets:
            try:
                self._predictor.depth_shift(1.0)
            except DepthError as error:
                raise ApiError(422, "no_depth", f"depth_budget: {error}.") from None

    async def split(self, texts: list[str], *, contributions: bool = False) -> list[Words]:
        """Return the words of each text."""
        if sum(map(len, texts)) <= _INLINE_CHARACTERS:
            return self._split_groups([texts], contributions)
        # One text at a time: a body can hold far more words than are allowed.
        groups = [[text] for text in texts]
        return await asyncio.to_thread(self._split_groups, groups, contributions)

    def _split_groups(self, groups: list[list[str]], contributions: bool) -> list[Words]:
        words: list[Words] = []
        for texts in groups:
            words += self._predictor.split(texts)
            self._check_counts([len(text.ids) for text in words], contributions)
        return words

    def _check_counts(self, counts: list[int], contributions: bool) -> None:
        limits = self._limits
        for number, count in enumerate(counts):
            if count > limits.words_per_text:
                message = f"texts.{number}: {count} words; at most {limits.words_per_text}."
                raise limit_error(limits, "words_per_text", message)
        if sum(counts) > limits.words_per_request:
            message = f"The texts have more than {limits.words_per_request} words in total."
            raise limit_error(limits, "words_per_request", message)
        if contributions and sum(map(words_read, counts)) > limits.words_per_request:
            message = (
                "For the contributions, the texts are read again without each word: more than "
                f"{limits.words_per_request} words in total."
            )
            raise limit_error(limits, "words_per_request", message)
