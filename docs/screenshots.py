"""Takes the screenshots of docs/pictures/*.png in Chromium: ``make screenshots``.

The report is that of a replay of the examples. The gateway serves one example session, call by call, in front of a provider of
a few lines on loopback. Both run as README shows them.
"""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parents[1]
PICTURES = ROOT / "docs" / "pictures"
SESSION = ROOT / "examples" / "coding_session.json"
SESSIONS = ROOT / "examples" / "coding_sessions.jsonl"
COMPACTION = (sys.executable, "-m", "compaction")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]


class Provider(BaseHTTPRequestHandler):
    """Answers every chat request with two words."""

    def do_POST(self) -> None:
        """Answer a request."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        usage = {"prompt_tokens": len(json.dumps(body)) // 4, "completion_tokens": 2, "total_tokens": 0}
        message = {"role": "assistant", "content": "Very well."}
        answer = {"id": "1", "object": "chat.completion", "created": 0, "model": body["model"], "usage": usage}
        data = json.dumps({**answer, "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing."""


@contextlib.contextmanager
def gateway() -> Iterator[str]:
    """Serve a gateway in front of the provider; yield its address."""
    provider = ThreadingHTTPServer(("127.0.0.1", 0), Provider)
    threading.Thread(target=provider.serve_forever, daemon=True).start()
    upstream = f"http://127.0.0.1:{provider.server_port}/v1"
    command = [*COMPACTION, "serve", "--port", "0", "--window", "8k", "--openai-url", upstream]
    served = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert served.stderr is not None
    found = None
    while not found:
        found = re.search(r"http://127\.0\.0\.1:\d+", served.stderr.readline())
    threading.Thread(target=served.stderr.read, daemon=True).start()
    try:
        yield found[0]
    finally:
        served.terminate()
        served.wait()
        provider.shutdown()


def converse(address: str) -> None:
    """Send the example session through the gateway, as its agent would: one request for each answer."""
    messages = json.loads(SESSION.read_text(encoding="utf-8"))["messages"]
    for end in (place for place, message in enumerate(messages) if message["role"] == "assistant" and place):
        data = json.dumps({"model": "gpt-5", "messages": messages[:end]}).encode()
        request = urllib.request.Request(f"{address}/v1/chat/completions", data, {"Content-Type": "application/json"})
        request.add_header("Authorization", "Bearer example")
        urllib.request.urlopen(request).read()


def main() -> None:
    """Write both screenshots."""
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        report = Path(folder) / "report.html"
        strategies = ("--strategy", "adaptive", "--strategy", "hermes", "--strategy", "truncate")
        subprocess.run(
            [*COMPACTION, "replay", str(SESSIONS), "--window", "8k", *strategies, "--report", str(report)], check=True
        )
        browser = driver.chromium.launch(executable_path=program, args=FLAGS)
        page = browser.new_page(viewport={"width": 1200, "height": 860})
        page.goto(report.as_uri())
        page.wait_for_selector(".row")
        page.screenshot(path=PICTURES / "report.png")
        with gateway() as address:
            converse(address)
            page.goto(address)
            page.set_viewport_size({"width": 1200, "height": 640})
            page.locator("summary").first.click()
            page.wait_for_timeout(1_500)
            page.screenshot(path=PICTURES / "gateway.png")
        browser.close()


if __name__ == "__main__":
    main()
