"""A transport of ``httpx`` that compacts chat completions, for any framework whose OpenAI client takes an ``http_client``.

``autogen_agent.py`` and ``llama_index_agent.py`` use it.
"""

import json
from typing import Any

import httpx

from compaction.session import CompactionSession


class CompactedRequests(httpx.AsyncBaseTransport):
    """Sends what a session returns in place of the messages of each request, and once more if that was too long."""

    def __init__(self, session: CompactionSession) -> None:
        self.session, self.transport = session, httpx.AsyncHTTPTransport()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send one request."""
        body = json.loads(request.content)
        response = await self.send(request, {**body, "messages": await self.session.view(body["messages"])})
        if response.status_code == 400:
            refused = httpx.HTTPStatusError(response.text, request=request, response=response)
            response = await self.send(request, {**body, "messages": await self.session.overflowed(refused)})
        if response.is_success and not body.get("stream"):
            self.session.record_usage(response.json()["usage"])
        return response

    async def send(self, request: httpx.Request, body: dict[str, Any]) -> httpx.Response:
        """Send a request with another body, and read the answer unless it is streamed."""
        headers = {name: value for name, value in request.headers.items() if name != "content-length"}
        sent = httpx.Request(request.method, request.url, headers=headers, json=body, extensions=request.extensions)
        response = await self.transport.handle_async_request(sent)
        if response.is_error or not body.get("stream"):
            await response.aread()
        return response
