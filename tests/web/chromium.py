"""Chromium: a real browser for tests, controlled by its DevTools protocol.

The protocol is JSON on a web socket, which aiohttp, a test dependency already, can speak: no driver
or further package is needed. Console messages and policy violations of the page are recorded, too.
"""

import asyncio
import base64
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import aiohttp

TIMEOUT_S = 30
NAMES = ("chromium", "chromium-browser", "google-chrome")
KEYS = {
    "Tab": 9,
    "Enter": 13,
    "Escape": 27,
    "End": 35,
    "Home": 36,
    "ArrowLeft": 37,
    "ArrowUp": 38,
    "ArrowRight": 39,
    "ArrowDown": 40,
}
SETTLED = (
    "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))"
)


def find_chromium() -> str | None:
    """The path of the browser; None when there is none."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Browser:
    """A headless browser with its own profile in `folder`."""

    def __init__(self, folder: Path) -> None:
        program = find_chromium()
        assert program is not None
        self._loop = asyncio.new_event_loop()
        self._process = subprocess.Popen(
            [
                program,
                "--headless=new",
                "--no-sandbox",  # tests run as root in containers
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--no-first-run",
                "--disable-extensions",
                "--disable-background-networking",
                "--hide-scrollbars",
                "--ignore-certificate-errors",  # servers under test create their own certificates
                "--remote-debugging-port=0",
                f"--user-data-dir={folder}",
                "about:blank",
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self._process.stderr is not None
        for line in self._process.stderr:
            if line.startswith("DevTools listening on "):
                self._address = line.split()[-1]
                break
        else:
            raise RuntimeError("chromium did not start")
        self._session: aiohttp.ClientSession | None = None
        self._run(self._connect())

    def _run(self, work: Any) -> Any:
        return self._loop.run_until_complete(asyncio.wait_for(work, TIMEOUT_S))

    async def _connect(self) -> None:
        self._session = aiohttp.ClientSession()
        self._socket = await self._session.ws_connect(self._address, max_msg_size=0)
        self._number = 0
        self.heard: list[dict[str, Any]] = []

    async def _send(self, method: str, session: str, parameters: dict[str, Any]) -> Any:
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        await self._socket.send_json({**message, **({"sessionId": session} if session else {})})
        while True:
            answer = json.loads((await self._socket.receive()).data)
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            self.heard.append(answer)

    def send(self, method: str, session: str = "", **parameters: Any) -> Any:
        """Send a command and return the result."""
        return self._run(self._send(method, session, parameters))

    def open(self, url: str, width: int = 1400, height: int = 900, scheme: str = "light") -> "Tab":
        """Open a tab with the page at `url` and wait until it is loaded."""
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        return Tab(self, target, session, url, (width, height), scheme)

    def close(self) -> None:
        """Stop the browser."""

        async def disconnect() -> None:
            assert self._session is not None
            await self._session.close()

        self._run(disconnect())
        self._process.terminate()
        self._process.wait(TIMEOUT_S)
        assert self._process.stderr is not None
        self._process.stderr.close()
        self._loop.close()


class Tab:
    """One page in the browser."""

    def __init__(
        self,
        browser: Browser,
        target: str,
        session: str,
        url: str,
        size: tuple[int, int],
        scheme: str,
    ) -> None:
        self._browser = browser
        self._target = target
        self._session = session
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")
        self.resize(*size)
        self.send(
            "Emulation.setEmulatedMedia",
            features=[{"name": "prefers-color-scheme", "value": scheme}],
        )
        self.send("Page.navigate", url=url)
        self.wait_for("document.readyState === 'complete' && !!window.bayplan")

    def send(self, method: str, **parameters: Any) -> Any:
        return self._browser.send(method, self._session, **parameters)

    def resize(self, width: int, height: int) -> None:
        """Set the size of the page in pixels."""
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    def run(self, expression: str) -> Any:
        """The value of a JavaScript expression; a promise is awaited."""
        answer = self.send(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in answer:
            raise RuntimeError(json.dumps(answer["exceptionDetails"])[:2000])
        return answer["result"].get("value")

    def wait_for(self, condition: str) -> None:
        """Wait until the expression is true, checking each frame; fails after a timeout."""
        asked = f"""new Promise((done, failed) => {{
            const until = performance.now() + {TIMEOUT_S * 500};
            const look = () => {{
                let found = false;
                try {{ found = {condition}; }} catch {{ /* not there yet */ }}
                if (found) done(true);
                else if (performance.now() > until) failed(new Error({json.dumps(condition)}));
                else setTimeout(look, 16);
            }};
            look();
        }})"""
        for attempt in range(5):
            try:
                self.run(asked)
                return
            except RuntimeError as error:  # the page was navigated during the evaluation
                if attempt == 4 or ("context" not in str(error) and "navigated" not in str(error)):
                    raise

    def settle(self) -> None:
        """Wait until changes are drawn."""
        self.run(SETTLED)

    def text(self, selector: str) -> str:
        """The visible text of the first element that matches; "" when there is none."""
        return str(self.run(f"document.querySelector({json.dumps(selector)})?.innerText ?? ''"))

    def texts(self, selector: str) -> list[str]:
        """The texts of all elements that match."""
        found = f"[...document.querySelectorAll({json.dumps(selector)})].map(e => e.innerText)"
        return list(self.run(found))

    def click(self, selector: str) -> None:
        """Click on the middle of the first element that matches."""
        place = self.run(f"""(() => {{
            const area = document.querySelector({json.dumps(selector)}).getBoundingClientRect();
            return [area.left + area.width / 2, area.top + area.height / 2];
        }})()""")
        self.click_at(*place)

    def click_at(self, x: float, y: float) -> None:
        """Click at a position with a realistic duration: the page may be redrawn meanwhile."""
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            button = "none" if kind == "mouseMoved" else "left"
            self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, button=button, clickCount=1)
            self.settle()

    def move_to(self, x: float, y: float) -> None:
        """Move the mouse to a position."""
        self.send("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        self.settle()

    def type(self, text: str) -> None:
        """Type text into the focused element."""
        self.send("Input.insertText", text=text)
        self.settle()

    def press(self, *keys: str) -> None:
        """Press keys, one after the other."""
        for key in keys:
            code = KEYS.get(key, ord(key[0].upper()))
            text = {"text": "\r"} if key == "Enter" else {"text": key} if len(key) == 1 else {}
            named = {"key": key, "code": key, "windowsVirtualKeyCode": code}
            pressed = "keyDown" if text else "rawKeyDown"
            self.send("Input.dispatchKeyEvent", type=pressed, **named, **text)
            self.send("Input.dispatchKeyEvent", type="keyUp", **named)
        self.settle()

    def problems(self) -> list[str]:
        """Errors of the page: exceptions, console errors, policy violations."""
        self.send("Runtime.evaluate", expression="0")
        found = []
        for message in self._browser.heard:
            if message.get("sessionId") != self._session:
                continue
            method, told = message["method"], message["params"]
            if method == "Runtime.exceptionThrown":
                found.append(json.dumps(told["exceptionDetails"])[:500])
            elif method == "Runtime.consoleAPICalled" and told["type"] == "error":
                found.append(json.dumps(told["args"])[:500])
            elif method == "Log.entryAdded" and told["entry"]["level"] == "error":
                found.append(told["entry"]["text"])
        return found

    def forget_problems(self) -> None:
        """Discard the errors so far, which were expected."""
        self._browser.heard.clear()

    def requests(self) -> list[str]:
        """The addresses that the page requested."""
        self.send("Runtime.evaluate", expression="0")
        return [
            message["params"]["request"]["url"]
            for message in self._browser.heard
            if message.get("sessionId") == self._session
            and message["method"] == "Network.requestWillBeSent"
        ]

    def picture(self, path: Path) -> None:
        """Write a screenshot to a PNG file."""
        self.settle()
        path.write_bytes(base64.b64decode(self.send("Page.captureScreenshot")["data"]))

    def close(self) -> None:
        """Close the tab."""
        self._browser.send("Target.closeTarget", targetId=self._target)
