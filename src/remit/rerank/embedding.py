"""The embedding router: cosines between the user's words and the tools' own, by the static embeddings of wordllama.

Rule 1: a tool fits as well as the better of its name and its description does. Names of parameters made it worse.
Rule 2: words are read clause by clause, since a request may ask for two things; each clause asks for the tool that fits it
        best, if that fits clearly. Where none does, the best of all is taken if it fits at all.
Rule 3: the package is loaded with the first question, from its own folder, and never asks the network.
Rule 4: what was embedded once is kept, by the words it came from.
"""

import logging
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, cast

from remit.core.limits.tools import ToolDefinition
from remit.core.regex import regex
from remit.rerank.router import Scored

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]

# Measured over requests that ask for a tool and requests that ask for none; docs/routing.md has the figures.
FITS_MIN = 0.17
FITS_CLEARLY_MIN = 0.28
# A page of words: what stands further back seldom says which tool is meant, and each clause costs an embedding.
WORDS_CHARS_MAX = 4000
CLAUSES_MAX = 16
# A text this long is all of a description that tells it from others.
DESCRIPTION_CHARS_MAX = 1000
# Some thousand tools at two texts each, a kilobyte per text.
VECTORS_MAX = 4096

# Sentences, lines, and what `and` or `then` joins.
_joints = regex(r"(?<=[.?!;])\s+|[\n;]+|,?\s+(?:and|then)\s+(?:then\s+|also\s+)?", re.IGNORECASE)
# Courtesies that many requests share with many descriptions ("Tell me", "Show me") and that say nothing of the tool.
_courtesies = regex(
    r"\b(?:please|(?:tell|show|give) me|let me know|(?:can|could|would|will) you|i (?:want|would like|need) (?:you )?to)\b",
    re.IGNORECASE,
)


class EmbeddingRouter:
    """Ranks tools by cosine. It may be asked from any thread."""

    def __init__(self) -> None:
        self._lock, self._loading = Lock(), Lock()
        self._model: Any = None
        self._vectors: dict[str, Vectors] = {}

    def shortlist(self, words: str, tools: Sequence[ToolDefinition]) -> Sequence[Scored]:
        """The tools that the words ask for, in the order in which they ask; none when no tool fits."""
        clauses = request_parts(words)
        if not clauses or not tools:
            return ()
        scores = self._scores(clauses, tools)
        best = [max(range(len(tools)), key=row.__getitem__) for row in scores]
        asked = [Scored(tools[at].name, row[at]) for row, at in zip(scores, best, strict=True)]
        clear: dict[str, Scored] = {}
        for each in asked[:-1]:
            if each.score >= FITS_CLEARLY_MIN:
                clear.setdefault(each.tool, each)
        if clear:
            return tuple(clear.values())
        only = max(asked, key=lambda each: each.score)
        return (only,) if only.score >= FITS_MIN else ()

    def ranked(self, words: str, tools: Sequence[ToolDefinition]) -> Sequence[Scored]:
        """All of the tools, the one that fits best first."""
        if not tools:
            return ()
        scores = self._scores(request_parts(words) or [" "], tools)
        fits = [Scored(tool.name, max(row[at] for row in scores)) for at, tool in enumerate(tools)]
        return tuple(sorted(fits, key=lambda each: (-each.score, each.tool)))

    def _scores(self, clauses: Sequence[str], tools: Sequence[ToolDefinition]) -> list[list[float]]:
        """By clause and tool: how well the tool fits the clause."""
        import numpy as np

        names = self._embedded([_spoken(tool.name) for tool in tools])
        texts = self._embedded([tool.description[:DESCRIPTION_CHARS_MAX] or _spoken(tool.name) for tool in tools])
        asked = self._computed(clauses)
        found: list[list[float]] = np.maximum(asked @ names.T, asked @ texts.T).tolist()
        return found

    def _embedded(self, texts: Sequence[str]) -> "Vectors":
        """The vectors of texts that will be asked for again."""
        import numpy as np

        with self._lock:
            if len(self._vectors) + len(texts) > VECTORS_MAX:
                self._vectors.clear()
            missing = [text for text in dict.fromkeys(texts) if text not in self._vectors]
            if missing:
                self._vectors.update(zip(missing, self._computed(missing), strict=True))
            return np.stack([self._vectors[text] for text in texts])

    def _computed(self, texts: Sequence[str]) -> "Vectors":
        return cast("Vectors", self._loaded().embed(list(texts), norm=True))

    def _loaded(self) -> Any:
        with self._loading:
            if self._model is None:
                self._model = _load()
            return self._model


@cache
def embedding_router() -> EmbeddingRouter:
    """The router of this process: a second would hold its weights twice."""
    return EmbeddingRouter()


def request_parts(words: str) -> list[str]:
    """The parts of a request that may each ask for something, and last the request as a whole."""
    whole = words[:WORDS_CHARS_MAX].strip()
    parts = [part for part in _joints.split(whole) if part and part.strip()]
    return [_bare(clause) for clause in (*parts[:CLAUSES_MAX], whole)] if whole else []


def _bare(clause: str) -> str:
    return " ".join(_courtesies.sub(" ", clause).split()).strip(" ,") or clause.strip()


def _spoken(name: str) -> str:
    """The words in a name: `read_file`, read-file and readFile are all `read file`."""
    return re.sub(r"[_-]+|(?<=[a-z0-9])(?=[A-Z])", " ", name).strip() or name


def _load() -> Any:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    import wordllama  # type: ignore[import-untyped]

    # The package sets up logging where it is imported, which is not a library's to do.
    root.handlers[:] = handlers
    root.setLevel(level)
    folder = Path(wordllama.__file__).parent
    return wordllama.WordLlama.load(cache_dir=folder, disable_download=True)
