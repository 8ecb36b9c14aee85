"""Build the evaluators of `demur score` from the options of the command line."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from demur import RefChecker, ReverseValidation, resolve_model
from demur.cli.options import unknown
from demur.cli.runs import ROWS_AT_ONCE, policy_of
from demur.comparing import has_sources, is_entity
from demur.evaluators import (
    CONFIGURATIONS,
    DESCRIPTIONS,
    FEWL,
    CallGrounding,
    Fitted,
    NeighborStore,
    call_in,
    default_configuration,
    resolve_judge,
)
from demur.runtime import UndeterminedError
from demur.schema import Sample, Threshold
from demur.scoring import Prepare, Scorer
from demur.similarity import resolve_similarity

Options = Mapping[str, Any]
"""The options that were given on the command line, by the names of the function's arguments."""
Check = Callable[[Sample], str | None]
"""A function that returns what a sample lacks to be scored, or None."""


@dataclass(frozen=True)
class Method:
    """Describe how a data set is scored."""

    evaluators: Mapping[str, Scorer]
    """The evaluators, by their names in the results."""
    settings: Mapping[str, Any]
    """Everything that a score depends on, as JSON values."""
    prepare: Prepare | None = None
    close: Callable[[], None] = lambda: None
    """A function that is called when the run ended without an error."""


@dataclass(frozen=True)
class Maker:
    """Describe how a method is built from options."""

    options: Sequence[str]
    """The names of the options that the method has."""
    check: Callable[[Options], Check]
    """A function that returns the check of samples. It is called before the method is built."""
    make: Callable[[Options, Path], Method]
    """A function that builds the method from the options and the results file, beside which it may
    keep data. It raises ValueError or TypeError if the value of an option cannot be used."""
    configurations: Mapping[str, str] = field(default_factory=dict)
    """The names that `--config` accepts, each with its meaning."""


# -- RefChecker ------------------------------------------------------------------------------------


def _refchecker(options: Options, results: Path) -> Method:
    names = ("checker", "claims", "aggregation", "threshold", "refusals")
    arguments = {name: options[name] for name in names if name in options}
    model = options.get("model", "local")
    judge = resolve_judge(model)
    evaluator = RefChecker(
        judge, **arguments, call_policy=policy_of(judge, options.get("max_concurrency"))
    )
    named = {name: getattr(evaluator, name) for name in names}
    settings = {"model": model, **named, "threshold": _plain(evaluator.threshold)}
    return Method({"refchecker": evaluator}, settings)


def _has_references(sample: Sample) -> str | None:
    if has_sources(sample):
        return None
    return (
        "it has nothing to check the answer against: expected contexts (a list of texts) or a "
        "reference; --field contexts=NAME names another field"
    )


# -- FEWL ------------------------------------------------------------------------------------------


def _fewl(options: Options, results: Path) -> Method:
    similarity = resolve_similarity(options.get("similarity", "cosine"))
    chosen = _configurations(
        options.get("config", [default_configuration(similarity)]), CONFIGURATIONS
    )
    names = options.get("reference_model", ["local"])
    if len(names) > 1 and "n_answers" in options:
        raise ValueError(
            "n_answers has no effect with several references, each of which gives one answer: "
            "leave it out"
        )
    models = [resolve_model(name) for name in names]
    generator = options.get("generator")
    counts = {
        name: options.get(name, FEWL.model_fields[name].default)
        for name in ("n_answers", "n_wrong")
    }
    premise = options.get("premise", FEWL.model_fields["premise"].default)
    references = {"reference_models": names, "generator": generator, **counts}
    store = _store(options, results, references)
    evaluators = {
        name: FEWL(
            models if len(models) > 1 else models[0],
            generator=None if generator is None else resolve_model(generator),
            similarity=similarity,
            premise=premise,
            neighbors=store,
            threshold=options.get("threshold"),
            call_policy=policy_of(models[0], options.get("max_concurrency")),
            **counts,
            **CONFIGURATIONS[name],
        )
        for name in chosen
    }
    places = ("threshold", "neighbors", "neighbors_collection")
    settings = {
        **references,
        "k_neighbors": FEWL.model_fields["k_neighbors"].default,
        "similarity": similarity.fingerprint,
        "premise": premise,
        **{name: _plain(options.get(name)) for name in places},
        "config": {name: dict(CONFIGURATIONS[name]) for name in chosen},
    }
    # An evaluator that needs pairs asks, if there is one, because all evaluators share the store.
    asker = max(evaluators.values(), key=lambda evaluator: evaluator.needs_pairs)

    def prepare(questions: Iterable[str], *, progress: Callable[[Fitted], None]) -> Fitted:
        at_once = options.get("max_concurrency", ROWS_AT_ONCE)
        return asker.fit(questions, pairs=True, at_once=at_once, progress=progress)

    return Method(evaluators, settings, prepare, store.close)


def _configurations(named: Iterable[str], known: Iterable[str]) -> list[str]:
    """Return the names without repeats, and refuse an unknown name."""
    names = [*dict.fromkeys(named)]
    for name in names:
        if name not in known:
            raise ValueError(unknown("config", name, known, "--list-configs"))
    return names


def _store(options: Options, results: Path, references: Mapping[str, Any]) -> NeighborStore:
    """Return the named store, or a store beside the results, so that no answer is paid twice.

    In that store, each set of references has its own collection.
    """
    named = {"collection": options.get("neighbors_collection")}
    if "neighbors" not in options:
        who = json.dumps(references, sort_keys=True)
        digest = hashlib.sha256(who.encode()).hexdigest()[:12]
        named["collection"] = named["collection"] or f"fewl-{digest}"
    place = options.get("neighbors", results.with_suffix(".neighbors"))
    if "ray" in options and "://" not in str(place):
        raise ValueError(
            "neighbors: the workers of a cluster share no folder. Start a Chroma server (chroma "
            "run --path FOLDER) and give its URL, --neighbors http://HOST:8000"
        )
    return NeighborStore(place, **{name: value for name, value in named.items() if value})


def _fewl_check(options: Options) -> Check:
    chosen = _configurations(options.get("config", []), CONFIGURATIONS)
    ideal = any(CONFIGURATIONS[name]["weighting"] == "ideal" for name in chosen)

    def check(sample: Sample) -> str | None:
        if not (sample.question or "").strip():
            return "it has no question; --field question=NAME names another field"
        for side in ("correct", "incorrect") if ideal else ():
            texts = sample.metadata.get(side)
            if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
                return (
                    f"a configuration with ideal weights needs a list of texts in metadata "
                    f"{side!r}; --field metadata.{side}=NAME names another field"
                )
        return None

    return check


# -- Reverse Validation ----------------------------------------------------------------------------

_VARIANTS = {
    "qg": "By a question whose answer is the entity: the cheaper one.",
    "em": "By a list of requirements that the entity meets.",
}


def _reverse_validation(options: Options, results: Path) -> Method:
    chosen = _configurations(options.get("config", ["qg"]), _VARIANTS)
    model, validator = options.get("model", "local"), options.get("validator")
    chat = resolve_model(model)
    arguments = {name: options[name] for name in ("matcher", "threshold") if name in options}
    evaluators = {
        name: ReverseValidation(
            chat,
            validator=None if validator is None else resolve_model(validator),
            call_policy=policy_of(chat, options.get("max_concurrency")),
            **{**arguments, "variant": name},
        )
        for name in chosen
    }
    evaluator = next(iter(evaluators.values()))
    shared = {"matcher": evaluator.matcher, "threshold": _plain(evaluator.threshold)}
    settings = {"model": model, "validator": validator, **shared, "config": list(evaluators)}
    return Method(evaluators, settings)


def _entity_is_a_name(sample: Sample) -> str | None:
    entity = sample.metadata.get("entity")
    if is_entity(entity):
        return None
    return f"metadata 'entity': expected the name of what the answer is about, got {entity!r:.100}"


# -- Calls -----------------------------------------------------------------------------------------


def _call_grounding(options: Options, results: Path) -> Method:
    return Method({"call-grounding": CallGrounding()}, {})


def _is_call(sample: Sample) -> str | None:
    try:
        call_in(sample)
    except UndeterminedError as error:
        return str(error)
    return None


def _plain(value: Any) -> Any:
    """Return a setting as a JSON value."""
    return value.model_dump(mode="json") if isinstance(value, Threshold) else value


_FEWL_OPTIONS = (
    *("config", "reference_model", "generator", "similarity", "premise", "neighbors"),
    *("neighbors_collection", "n_answers", "n_wrong", "threshold", "max_concurrency"),
)
_REFCHECKER_OPTIONS = (
    *("model", "checker", "claims", "aggregation", "threshold", "refusals"),
    "max_concurrency",
)
_REVERSE_OPTIONS = ("config", "model", "validator", "matcher", "threshold", "max_concurrency")

METHODS: dict[str, Maker] = {
    "call-grounding": Maker((), lambda options: _is_call, _call_grounding),
    "fewl": Maker(_FEWL_OPTIONS, _fewl_check, _fewl, DESCRIPTIONS),
    "refchecker": Maker(_REFCHECKER_OPTIONS, lambda options: _has_references, _refchecker),
    "reverse-validation": Maker(
        _REVERSE_OPTIONS, lambda options: _entity_is_a_name, _reverse_validation, _VARIANTS
    ),
}

OPTIONS = {name for maker in METHODS.values() for name in maker.options}
"""The names of the options that some method has."""


def evaluators_of(method: str, options: Options, results: Path) -> Mapping[str, Scorer]:
    """Return the evaluators of a method, in a worker of a cluster."""
    return METHODS[method].make(options, results).evaluators
