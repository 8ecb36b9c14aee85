"""Take the screenshots of the documentation from a real run: `python tools/screenshots.py FOLDER`.

The demonstration's guarded chain answers sixty questions about the standard library with the local
model, in about ten minutes. A handler logs the answers, and Chromium opens the report. FOLDER keeps
the log and the labels; a log that is there is used again. The pictures are saved in docs/images.
"""

from __future__ import annotations

import csv
import hashlib
import sys
from pathlib import Path
from typing import Literal

from playwright.sync_api import Page, sync_playwright

sys.path.insert(0, str(Path(__file__).parents[1]))  # the file can be started by its path

from tools.browsers import launched

from demur import ScoreCallbackHandler
from demur.cli.demo.chain import guarded
from demur.cli.demo.corpus import passages
from demur.cli.demo.index import open_index
from demur.cli.demo.play import RETRIEVED
from demur.local import MINILM, MiniLM, model_dir, resolve_model
from demur.observe.log import open_log, read_labels, records
from demur.views.report import write_report

IMAGES = Path(__file__).parents[1] / "docs" / "images"

# The judgement of a person who knows the library on the first answer to each question: + right,
# - hallucinated, ? neither. The digits are from a hash of that answer; other answers get no label.
READ = """
    + ab4b72f0 Which clock should I use to measure durations, and can it go backwards?
    - 5fa792b1 Does textwrap.dedent remove all leading whitespace?
    - 7e20d7d7 Does copy.copy copy nested objects too?
    - f1fa5878 What does os.path.join do with an absolute second path?
    + 1dcbd9db What does bisect.insort do to a list?
    + 370f161a Which exception does statistics.mean raise for empty data?
    - e4eeaf73 How many bytes does secrets.token_hex give by default?
    + fc1a8dcb What does heapq.heapify do, and how long does it take?
    - 9877e99a Does shutil.copy keep the file's metadata?
    + 60b1822b What does functools.lru_cache do when maxsize is None?
    + 8a957071 What does itertools.tee return?
    + 3d408843 Can a namedtuple have default values?
    + 42ed1701 What does math.isclose compare with by default?
    + 09195bd3 What does json.dumps do with keys that are not strings?
    + 062853c9 Which alphabet does base64.urlsafe_b64encode use?
    + 5129a886 What does fnmatch.fnmatchcase do?
    + d87a31f1 How does random.choices choose elements?
    - 22cda242 What happens in queue.Queue.get when the queue is empty?
    + 77347841 What does contextlib.suppress do?
    + 72302a6a What does calendar.isleap return?
    + aa607690 How does difflib.get_close_matches decide which words are close?
    + 14995e46 What does enum.unique check?
    + 03598b99 How does hmac.compare_digest protect against timing attacks?
    + 219c1899 What does html.escape do with quotation marks?
    - 01bcb990 What does ipaddress.ip_network do with host bits that are set?
    - 4df03473 What does linecache.getline return when something goes wrong?
    + 84b816c6 Which format does logging.basicConfig use by default?
    ? f509a641 What does mimetypes.guess_type return for an unknown file?
    + e5c2fcc0 What does operator.itemgetter return for several items?
    - 182d9a0b Does pathlib.Path.resolve need the file to exist?
    - 2029996b Is it safe to unpickle data that somebody sent me?
    + d5b87644 What does platform.python_version return?
    + f50c9cfa What does pprint.pformat return?
    + 6d52b5c9 What does re.escape do?
    - 6d32efeb What does shlex.split do with quotes?
    + 44d1b740 What does signal.alarm do?
    + 5256fbc6 What does socket.create_connection do?
    + a105983f What does string.capwords do?
    + 0f23daea How does subprocess.run report a failed command?
    + 6640fc87 What does sys.getsizeof count?
    + ce272458 Who deletes the directory that tempfile.mkdtemp makes?
    + 1a947354 What is threading.Event for?
    - a919bfdb How often does timeit.timeit run a statement by default?
    ? ed80825c What does urllib.parse.quote leave as it is?
    + 25564ba7 What is the difference between uuid1 and uuid4?
    ? 197cfcaa Does warnings.warn show the same warning twice?
    + 5cd465a8 What does weakref.finalize do?
    + d6d8769d What does zipfile.is_zipfile check?
    + 8185f9c4 What does zlib.crc32 compute?
    + 74215252 What does collections.Counter.most_common return without an argument?
    + c9546ce6 What does decimal.getcontext return?
    + 2583b29c What does dataclasses.replace do?
    - e5affbf0 What does gzip.compress return?
    + 45220ad7 Which files does glob.glob leave out?
    + b8bcbe97 What does getpass.getuser look at?
    + e6e60eaa How does filecmp.cmp compare files by default?
    - 9a6526d6 What does fractions.Fraction.limit_denominator do?
    ? b70b9f55 What does inspect.cleandoc do?
    + 785a47e8 What is io.StringIO for?
    + 33021b7d What does keyword.iskeyword return?
"""

ANSWER = "What does linecache.getline return when something goes wrong?"
"""The question whose answer has a picture of its own."""


def read() -> dict[str, tuple[str, str]]:
    """Return the judgement and the digits of the answer, by question."""
    lines = (line.split(maxsplit=2) for line in READ.strip().splitlines())
    return {question: (said, digits) for said, digits, question in lines}


def run(log: Path) -> None:
    """Ask the questions, and log the answers."""
    model, embeddings = resolve_model("local"), MiniLM()
    folder = model_dir() / "demo-index"
    index = open_index(passages(), embeddings, MINILM.sha256, folder, lambda done, total: None)
    guard = guarded(model, index.as_retriever(search_kwargs={"k": RETRIEVED}))
    handler = ScoreCallbackHandler(sink=log)
    for number, question in enumerate(read(), start=1):
        guard.invoke(question, config={"callbacks": [handler]})
        print(f"{number:2} {question}", flush=True)
    handler.close()


def label(log: Path, labels: Path) -> None:
    """Write the labels of the answers to a file."""
    said = read()
    with open_log(log) as opened, labels.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "hallucinated"])
        for record in records(opened):
            word, digits = said[record.question]
            answer = record.attempts[0].answer.strip()
            if hashlib.sha256(answer.encode()).hexdigest().startswith(digits) and word != "?":
                writer.writerow([record.id, word == "-"])


def main(folder: Path) -> None:
    """Run what is missing, and take the pictures."""
    folder.mkdir(parents=True, exist_ok=True)
    log, labels, page = folder / "runs.sqlite", folder / "labels.csv", folder / "report.html"
    if not log.exists():
        run(log)
    label(log, labels)
    with open_log(log) as opened:
        write_report(opened, page, title="Answers about Python", labels=read_labels(labels))
    shoot(page)


def shoot(page: Path) -> None:
    """Take the pictures of the report."""
    IMAGES.mkdir(exist_ok=True)
    with sync_playwright() as playwright:
        chromium = launched(playwright)

        def opened(width: int, height: int, scheme: Literal["light", "dark"]) -> Page:
            size = {"width": width, "height": height}
            shown = chromium.new_page(viewport=size, color_scheme=scheme)
            shown.goto(page.as_uri())
            shown.wait_for_selector(".chart svg")
            return shown

        wide = opened(1280, 1000, "light")
        save(wide, "report.png")
        wide.get_by_role("link", name=ANSWER).click()
        wide.wait_for_selector("#panel-body .demur")
        save(wide, "report-answer.png")
        dark = opened(1280, 1000, "dark")
        save(dark, "report-dark.png", "#thresholds")
        phone = opened(390, 844, "light")
        save(phone, "report-phone.png", "#rows tbody tr")
        chromium.close()


def save(page: Page, name: str, place: str = "html") -> None:
    """Save a picture of the page, scrolled to a place."""
    page.wait_for_timeout(1000)  # charts that are still being drawn move what is below them
    page.evaluate(f"document.querySelector('{place}').scrollIntoView()")
    page.wait_for_timeout(1000)  # the page scrolls smoothly
    page.screenshot(path=IMAGES / name)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
