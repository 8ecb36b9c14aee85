"""Show one evaluation."""

from __future__ import annotations

from collections.abc import Sequence

from demur.schema import Evaluation
from demur.views.claims import Numbered, View, claim_list, numbered
from demur.views.description import describe_evaluation
from demur.views.elements import Element, element, prefix_of, separated
from demur.views.pills import pill


def evaluation_html(evaluation: Evaluation) -> Element:
    """Show an evaluation: finding, score, explanation, claims with their evidence, and cost.

    An evaluation holds neither the answer nor the references, so nothing is highlighted in them.
    """
    view = View(prefix_of(("evaluation", repr(evaluation))))
    (claims,) = numbered((evaluation,))
    return element("article", evaluation_block(evaluation, claims, view), class_="demur")


def evaluation_block(
    evaluation: Evaluation, claims: Sequence[Numbered], view: View, which: str = ""
) -> Element:
    """Show an evaluation as a part of a view.

    Args:
        evaluation: The evaluation.
        claims: Its claims with their numbers.
        view: The ids and names of the answer's view.
        which: A text such as "1 of 3", if the evaluator has several evaluations.
    """
    shown = describe_evaluation(evaluation)
    return element(
        "section",
        element(
            "p",
            element("strong", evaluation.name, class_="demur-name"),
            element("span", which, class_="demur-quiet") if which else None,
            pill(shown.look),
            element("span", separated((shown.label, shown.score), " · ")),
            class_="demur-head",
        ),
        _paragraph(shown.error, "demur-why"),
        _paragraph(shown.explanation, "demur-explanation"),
        claim_list(claims, view),
        element("p", shown.cost, class_="demur-quiet"),
        class_="demur-evaluation",
    )


def _paragraph(text: str | None, class_: str) -> Element | None:
    return element("p", text, class_=class_, dir="auto") if text else None
