"""The page in a real Chromium: text, mouse and keyboard."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.rig.trees import node_tree, pod_tree

from .chromium import Tab
from .conftest import write


def ssd_node(name: str, zone: str = "a", cpu: str = "4", **extended: str) -> dict[str, Any]:
    return node_tree(name, cpu, zone=zone, pods="110", labels={"disk": "ssd"}, extended=extended)


def web_pod(name: str, cpu: str = "100m", node: str = "", **metadata: Any) -> dict[str, Any]:
    return pod_tree(name, cpu, node=node, metadata=metadata)


Open = Callable[..., Tab]
EVIL = "<img src=x onerror='window.hacked=1'>"
ESCAPE = "</script><script>window.hacked=2</script><!--"
ROW = ".list .row"


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """5,000 nodes in eight zones, 10,000 pods on them, some added later, and three that fit nowhere."""
    nodes = [ssd_node(f"node-{i:04}", f"zone-{i % 8}") for i in range(5000)]
    running = [web_pod(f"runs-{i:05}", node=f"node-{i // 2:04}") for i in range(10_000)]
    coming = [web_pod(f"comes-{i:03}") for i in range(300)]
    never = [web_pod(f"never-{i}", "64") for i in range(3)]
    path = tmp_path_factory.mktemp("large") / "report.html"
    return write(path, *nodes, *running, *coming, *never)


def figures(tab: Tab) -> dict[str, str]:
    words = tab.texts("#figures dt"), tab.texts("#figures dd")
    return dict(zip(*words, strict=True))


def place_of(tab: Tab, node: str) -> tuple[float, float]:
    """The position of the tile of a node on the screen."""
    x, y = tab.run(f"""(() => {{
        const tiles = bayplan.tiles, node = bayplan.data.nodes.indexOf({json.dumps(node)});
        const {{ block, i }} = tiles.find(node);
        const place = tiles.placeOf(block, i), area = tiles.box.getBoundingClientRect();
        return [area.left + place.x + tiles.size.width / 2,
                area.top + place.y + tiles.size.height / 2 - tiles.box.scrollTop];
    }})()""")
    return x, y


def colour_at(tab: Tab, x: float, y: float) -> list[int]:
    """The colour of a point of the tiles on the screen."""
    return list(
        tab.run(f"""(() => {{
        const area = bayplan.tiles.canvas.getBoundingClientRect();
        const ratio = window.devicePixelRatio;
        const at = [({x} - area.left) * ratio, ({y} - area.top) * ratio];
        return [...bayplan.tiles.context.getImageData(...at, 1, 1).data];
    }})()""")
    )


def choose(tab: Tab, choice: str, value: str) -> None:
    """Select the option with the value of the expression."""
    tab.run(f"""(() => {{
        const element = document.getElementById("{choice}");
        element.value = {value};
        element.dispatchEvent(new Event("change"));
    }})()""")
    tab.settle()


# Load


def test_a_report_opens_from_the_disk_without_requests(open_page: Open, example: Path) -> None:
    tab = open_page(example)

    assert figures(tab) == {
        "Nodes": "7",
        "Pods on nodes": "22",
        "Waiting": "2",
        "CPU requested": "43%",
        "Memory requested": "32%",
        "Disk requested": "0%",
        "gpu requested": "50%",
    }
    assert tab.texts("#queue .number") == ["0", "0", "2", "0"]
    assert [row.split("\n")[0] for row in tab.texts(ROW)] == ["in-memory-index", "edge-proxy"]
    assert [url for url in tab.requests() if not url.startswith("data:")] == [example.as_uri()]


def test_tiles_show_the_use_of_a_chosen_resource_by_a_chosen_label(
    open_page: Open, example: Path
) -> None:
    tab = open_page(example)
    zones = tab.run("bayplan.tiles.blocks.map(b => [b.value, b.nodes.length])")
    choose(tab, "resource", "0")
    x, y = place_of(tab, "gpu-b1")
    by_cpu = colour_at(tab, x, y - 60)

    choose(tab, "resource", "bayplan.data.resources.indexOf('example.com/gpu')")
    choose(tab, "group", "'node.example.com/disk'")

    assert zones == [["north-a", 2], ["north-b", 3], ["north-c", 2]]
    disks = tab.run("bayplan.tiles.blocks.map(b => [b.value, b.nodes.length])")
    assert disks == [["hdd", 1], ["ssd", 5], [None, 1]]
    x, y = place_of(tab, "gpu-b1")
    assert colour_at(tab, x, y - 60) != by_cpu
    assert "has none" in tab.text("#legend")


# Click


def test_a_click_on_a_pod_shows_the_refusals_and_reasons(open_page: Open, example: Path) -> None:
    tab = open_page(example)

    tab.click(ROW)

    assert tab.text("#details h2") == "in-memory-index"
    rows = [row.split("\n") for row in tab.texts(".verdicts tbody tr")]
    assert [row[0].split("\t")[0] for row in rows] == ["5", "1", "1"]
    assert "NodeResourcesFit" in tab.text(".verdicts tbody tr")
    assert "Insufficient cpu, Insufficient memory" in tab.text(".verdicts tbody tr")
    assert tab.run("document.activeElement.id") == "details-title"


def test_a_click_without_a_mouse_opens_a_pod(open_page: Open, example: Path) -> None:
    tab = open_page(example)

    tab.run(f"document.querySelector('{ROW}').click()")

    assert tab.text("#details h2") == "in-memory-index"


def test_the_nodes_of_a_refusal_are_highlighted(open_page: Open, example: Path) -> None:
    tab = open_page(example)
    tab.click(ROW)

    tab.run("document.querySelector('.verdicts tbody tr:nth-child(2)').focus()")

    marked = tab.run("[...bayplan.tiles.marked].map(n => bayplan.data.nodes[n])")
    assert marked == ["worker-c2"]


def test_a_placed_pod_shows_the_scores(open_page: Open, example: Path) -> None:
    tab = open_page(example)

    tab.run("bayplan.openPod(bayplan.data.pods.name.indexOf('db-0'))")

    chosen = tab.text(".scores .winner")
    assert "worker-b2" in chosen
    assert "661" in chosen
    assert len(tab.texts(".scores tr")) == 3
    assert "and 1 equal" in tab.texts(".scores tr")[-1]
    assert "TaintToleration 300" in tab.text("#details")


def test_a_click_on_a_tile_shows_the_node_and_from_there_its_pods(
    open_page: Open, example: Path
) -> None:
    tab = open_page(example)

    tab.click_at(*place_of(tab, "worker-b2"))
    node = tab.text("#details")
    tab.click(".pods button")

    assert "worker-b2" in node
    assert "topology.kubernetes.io/zone=north-b" in node
    assert "38%" in node
    assert "3.1 of 8" in node
    assert tab.text("#details .what") == "Pod in shop"
    assert tab.text(".place") == "on worker-b2"


def test_a_part_of_the_queue_can_be_shown_alone(open_page: Open, example: Path) -> None:
    tab = open_page(example)

    tab.click("#queue .s4")
    gated = tab.text("#no-rows")
    tab.click("#queue .s3")

    assert "No pod is in gated" in gated
    assert len(tab.texts(ROW)) == 2


# Search


@pytest.mark.parametrize(
    ("words", "title", "first"),
    [
        pytest.param("worker-c", "Nodes", "worker-c1", id="a node"),
        pytest.param("SHOP/db", "Pods", "db-0", id="a pod by its namespace, in capitals"),
        pytest.param("accelerator=g", "Labels", "node.example.com/accelerator=gpu", id="a label"),
    ],
)
def test_search_finds(open_page: Open, example: Path, words: str, title: str, first: str) -> None:
    tab = open_page(example)

    tab.press("/")
    tab.type(words)

    assert tab.text("#found .title") == title
    assert tab.text("#found .option .name") == first


def test_search_by_keyboard_opens_a_match_and_reports_no_match(
    open_page: Open, example: Path
) -> None:
    tab = open_page(example)

    tab.press("/")
    tab.type("no such thing")
    nothing = tab.text("#found")
    tab.press("Escape")
    tab.type("db-")
    tab.press("ArrowDown", "Enter")

    assert nothing == "No name contains this."
    assert tab.text("#details h2") == "db-1"


# Time


def test_the_slider_shows_any_moment(open_page: Open, day: Path) -> None:
    tab = open_page(day)
    at_the_end = figures(tab)

    tab.run("document.getElementById('slider').focus()")
    tab.press("Home")
    at_first = figures(tab)
    first_moment = tab.text("#moment")
    tab.press("End")

    assert at_first["Pods on nodes"] == "0"
    assert first_moment == "+0:00:00"
    assert figures(tab) == at_the_end


def test_going_back_and_forth_ends_where_going_straight_does(open_page: Open, day: Path) -> None:
    tab = open_page(day)
    parts = ("state", "node", "text", "row", "used", "counts")
    state = f"JSON.stringify([{', '.join(f'bayplan.model.{part}' for part in parts)}])"

    straight = []
    for place in range(11):
        tab.run(f"bayplan.timeline.go({place / 10})")
        straight.append(tab.run(state))
    for place in (7, 2, 9, 0, 10, 5):
        tab.run(f"bayplan.timeline.go({place / 10})")

        assert tab.run(state) == straight[place]


def test_steps_go_from_change_to_change(open_page: Open, day: Path) -> None:
    tab = open_page(day)
    tab.run("bayplan.timeline.go(0)")

    tab.click("[aria-label='Next change']")
    first = tab.run("bayplan.model.at")
    tab.click("[aria-label='Next change']")
    tab.click("[aria-label='Previous change']")

    assert first > 0
    assert tab.run("bayplan.model.at") == first


def test_play_runs_from_the_start_to_the_end(open_page: Open, day: Path) -> None:
    tab = open_page(day)

    tab.run("bayplan.timeline.speed = 200")
    tab.click("#play")
    tab.wait_for("!bayplan.timeline.isPlaying && bayplan.timeline.place === 1")

    assert tab.run("bayplan.model.at === bayplan.model.last")


def test_changes_are_listed_up_to_the_moment(open_page: Open, day: Path) -> None:
    tab = open_page(day)

    tab.click("#tab-log")
    newest = tab.text(ROW)
    tab.run("bayplan.timeline.go(0)")
    tab.settle()

    assert newest
    assert "Nothing has happened yet" in tab.text("#no-rows")


# Keyboard


def test_everything_is_reachable_by_keyboard(open_page: Open, example: Path) -> None:
    tab = open_page(example)
    reached = []
    for _ in range(40):
        tab.press("Tab")
        reached.append(tab.run("document.activeElement.id || document.activeElement.className"))

    wanted = {"query", "resource", "group", "sort", "tiles", "list", "slider", "play", "speed"}
    assert wanted <= set(reached)


def test_arrows_move_among_the_tiles_and_enter_opens(open_page: Open, example: Path) -> None:
    tab = open_page(example)

    tab.run("document.getElementById('tiles').focus()")
    tab.press("ArrowRight", "ArrowRight")
    spoken = tab.text("#tile")
    tab.press("Enter")
    opened = tab.text("#details h2")
    tab.press("Escape")

    assert spoken.startswith("gpu-b1, gpu 50%")
    assert opened == "gpu-b1"
    assert tab.run("document.getElementById('details').hidden")
    assert tab.run("document.activeElement.id") == "tiles"


def test_arrows_move_in_the_list_and_enter_opens(open_page: Open, example: Path) -> None:
    tab = open_page(example)

    tab.run("document.getElementById('list').focus()")
    tab.press("ArrowDown", "Enter")

    assert tab.text("#details h2") == "edge-proxy"


def test_focus_is_visible(open_page: Open, example: Path) -> None:
    tab = open_page(example)

    tab.press("Tab", "Tab")

    assert tab.run("getComputedStyle(document.activeElement).outlineStyle") == "solid"


# Light and dark


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_colours_follow_the_system_unless_chosen(
    open_page: Open, example: Path, scheme: str
) -> None:
    tab = open_page(example, scheme=scheme)
    other = {"light": "dark", "dark": "light"}[scheme]
    background = "getComputedStyle(document.body).backgroundColor"
    by_system = tab.run(background)

    tab.click(f"#theme [data-value={other}]")

    dark, light = "rgb(17, 23, 29)", "rgb(255, 255, 255)"
    assert by_system == {"light": light, "dark": dark}[scheme]
    assert tab.run(background) == {"light": dark, "dark": light}[scheme]
    tab.click("#theme [data-value=auto]")


# Text that would be markup


def test_user_input_is_always_shown_as_text(open_page: Open, tmp_path: Path) -> None:
    node = ssd_node(f"n{EVIL}", EVIL, **{EVIL: "3"})
    node["metadata"]["labels"][ESCAPE] = EVIL
    node["spec"] = {"taints": [{"key": EVIL, "value": ESCAPE, "effect": "NoSchedule"}]}
    gated = web_pod(f"gated-{EVIL}", namespace=ESCAPE, labels={"a": EVIL})
    gated["spec"]["schedulingGates"] = [{"name": ESCAPE}]
    refused = web_pod(ESCAPE, namespace=EVIL, labels={EVIL: ESCAPE})
    runs = web_pod("runs" + EVIL, node=f"n{EVIL}")
    tab = open_page(write(tmp_path / "report.html", node, gated, refused, runs))

    elements = tab.run("document.querySelectorAll('*').length")
    seen = tab.text("body")
    for pod in range(3):
        tab.run(f"bayplan.openPod({pod})")
        seen += tab.text("#details")
    tab.run("bayplan.openNode(0)")
    seen += tab.text("#details")
    tab.move_to(*place_of(tab, f"n{EVIL}"))
    seen += tab.text("#tip")
    tab.press("/")
    tab.type("img")
    seen += tab.text("#found")
    tab.run("bayplan.lists.show('log')")
    seen += tab.text("#list")

    assert elements > 50
    assert f"gated-{EVIL}" in seen
    assert ESCAPE in seen
    assert f"{EVIL}={ESCAPE}:NoSchedule" in seen
    assert f"{ESCAPE}={EVIL}" in seen
    assert tab.run("window.hacked === undefined")
    assert tab.run("document.querySelectorAll('img').length") == 0
    assert tab.run("document.scripts.length") == 2


def test_the_policy_blocks_injected_markup(open_page: Open, example: Path) -> None:
    tab = open_page(example)

    tab.run("""new Promise(done => {
        document.addEventListener('securitypolicyviolation', () => done(true), { once: true });
        document.body.insertAdjacentHTML('beforeend', '<img src=x onerror="window.hacked=1">');
    })""")

    assert tab.run("window.hacked === undefined")
    assert any("Content Security Policy" in problem for problem in tab.problems())
    tab.forget_problems()


# Many nodes


def test_5000_nodes_and_their_pods_are_shown_with_few_elements(
    open_page: Open, large: Path
) -> None:
    tab = open_page(large)

    assert figures(tab)["Nodes"] == "5,000"
    assert figures(tab)["Pods on nodes"] == "10,300"
    assert tab.run("bayplan.tiles.order.length") == 5000
    assert tab.run("bayplan.tiles.total <= bayplan.tiles.box.clientHeight")
    tab.click("#tab-pods")
    tab.run("document.getElementById('list').scrollTop = 300000")
    tab.settle()
    assert tab.run("document.querySelectorAll('*').length") < 500
    assert "runs-05" in tab.text(ROW)


def test_5000_nodes_can_be_clicked_searched_and_browsed(open_page: Open, large: Path) -> None:
    tab = open_page(large)

    tab.click(ROW)  # the three pods that fit nowhere
    tab.click(f"{ROW}:nth-child(2)")
    refused = tab.text(".verdicts tbody tr")
    tab.press("/")
    tab.type("node-4711")
    tab.press("Enter")
    pods = tab.text("#details h3")
    tab.run("bayplan.timeline.go(0)")
    tab.settle()

    assert "5,000" in refused
    assert "Insufficient cpu" in refused
    assert tab.text("#details h2") == "node-4711"
    assert pods.startswith("Pods (")
    assert figures(tab)["Waiting"] == "303"


def test_a_narrow_window_shows_everything(open_page: Open, example: Path) -> None:
    tab = open_page(example, width=600, height=900)

    assert tab.run("document.documentElement.scrollWidth") == 600
    assert tab.run("bayplan.tiles.order.length") == 7
    assert len(tab.texts(ROW)) == 2
