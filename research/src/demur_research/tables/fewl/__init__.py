"""List every table of the FEWL papers that can be run, and those that cannot."""

from __future__ import annotations

from demur_research.bench import NotRun, Table
from demur_research.tables.fewl.chale import CHALE
from demur_research.tables.fewl.exemplars import EXEMPLARS
from demur_research.tables.fewl.figures import FIGURES
from demur_research.tables.fewl.halueval import HALUEVAL
from demur_research.tables.fewl.models import MODELS
from demur_research.tables.fewl.orders import ORDERS
from demur_research.tables.fewl.references import UNLIKE
from demur_research.tables.fewl.samples import SAMPLES
from demur_research.tables.fewl.similarities import SIMILAR
from demur_research.tables.fewl.truthfulqa import TRUTHFULQA

_OWN = ("fewl-chale-all", "fewl-orders", "fewl-similarities", "fewl-references")


def _place(table: Table) -> tuple[bool, str, bool, int]:
    """Return a sort key: version, then tables, then figures by number; demur's own come last."""
    if table.name in _OWN:
        return True, "", False, _OWN.index(table.name)
    _, version, kind, number = table.name.split("-")
    return False, version, kind == "figure", int(number)


TABLES = tuple(
    sorted(
        (
            *(*CHALE, *TRUTHFULQA, *HALUEVAL, *MODELS, *SAMPLES),
            *(*FIGURES, *EXEMPLARS, *ORDERS, *SIMILAR, *UNLIKE),
        ),
        key=_place,
    )
)
"""The tables, in the order in which they are listed."""

_TUNED = (
    "OPT-1.3B is fine-tuned and its answers are judged: that takes a GPU and hours. "
    "docs/fine-tuning.md says how to choose the training data by FEWL, fine-tune a model of your "
    "own and have a judge compare the two."
)
_BY_HAND = (
    "People annotated the answers of three reference models; what they found is not published."
)
_HUMANS = (
    "People were the judges, and what they found is not published. The row of GPT-4 is run, with "
    "any model as the judge."
)
_PROVIDERS = (
    "The models of its rows are behind their providers' interfaces or are not named exactly. Any "
    "model that --model names takes their place; the papers' figures stand beside."
)

NOT_RUN = (
    NotRun("FEWL, version 1, Figure 1", "The steps of the method.", "It is a drawing."),
    NotRun("FEWL, version 2, Figure 1", "The steps of the method.", "It is a drawing."),
    NotRun("FEWL, version 1, Table 7", "Win rates of a fine-tuned model.", _TUNED),
    NotRun("FEWL, version 2, Table 6", "Win rates of a fine-tuned model.", _TUNED),
    NotRun("FEWL, version 1, Figure 3", "Answers of references judged by people.", _BY_HAND),
    NotRun("FEWL, version 2, Figure 3", "Answers of references judged by people.", _BY_HAND),
    NotRun("FEWL, version 1, Table 6, human judge", "Win rates of exemplars.", _HUMANS),
    NotRun("FEWL, version 2, Table 5, human judge", "Win rates of exemplars.", _HUMANS),
    NotRun("FEWL, both versions, rows of named models", "Every table that scores.", _PROVIDERS),
)
