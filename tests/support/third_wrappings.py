# ruff: noqa: E501
"""A third and a fourth set of wrappings, of frameworks, exports and tickets that the first two leave out.

Both were written before they ran. Repairs were made from what `THIRD` showed and judged by `FOURTH`, unseen: docs/reliability.md has the figures;
then `FOURTH` was looked at, too. Both are frozen: a wrapping that fails is a reason to repair the mechanism, never to change this list.
"""

from __future__ import annotations

import json

from .unseen_wrappings import PROSE, SHELL, TALK, around, line_by_line, pasted, program

THIRD = (
    # agents for code
    program(
        "swe-agent-1",
        around(
            "Your command ran successfully and produced the following output:\n{body}\n\n(Open file: /repo/a.py)\n(Current directory: /repo)\nbash-$"
        ),
    ),
    program(
        "swe-agent-truncated",
        around("OBSERVATION:\n{body}\n<response clipped><NOTE>Observation is too long, use a smaller range.</NOTE>"),
    ),
    program(
        "openhands-edit",
        around("[File /workspace/notes.md edited with 3 changes.]\nHere is the current state:\n{body}\n[End of file]"),
        PROSE,
    ),
    program(
        "openhands-ipython",
        around(
            "[IPython output]\n{body}\n[Jupyter current working directory: /workspace]\n[Jupyter Python interpreter: /usr/bin/python3]"
        ),
    ),
    program("openhands-delegate", around("<<< delegate finished: BrowsingAgent >>>\n{body}\n<<< end of delegate >>>"), PROSE),
    program(
        "codex-exec",
        around(
            "Chunk ID: 4f21aa\nWall time: 0.2 seconds\nProcess exited with code 0\nOriginal token count: 61\nOutput:\n{body}"
        ),
        closed=False,
    ),
    program("claude-code-hook", around("<user-prompt-submit-hook>\n{body}\n</user-prompt-submit-hook>"), PROSE),
    program(
        "claude-code-reminder",
        around("<system-reminder>\nThe file /repo/notes.md was changed. Its lines now:\n{body}\n</system-reminder>"),
    ),
    program(
        "continue-context", around("```notes.md (1-12)\n{body}\n```\nUse the above code to answer the following question.")
    ),
    program("goose", around("# resource: notes.md\n-----\n{body}\n-----\nend resource")),
    program("plandex", around("📄 notes.md\n┌──────────\n{body}\n└──────────")),
    program("devin-shell", around("shell 'main' returned after 0.31s with status 0:\n\n{body}\n\n~/repo $")),
    program("sweep-snippet", around('<relevant_file path="notes.md">\n<source>\n{body}\n</source>\n</relevant_file>')),
    program(
        "langchain-human", around("Human response requested by tool `ask`.\nTool `fetch` gave back >>>\n{body}\n<<<"), PROSE
    ),
    program("babyagi", around("*****TASK RESULT*****\n\n{body}\n\n*****NEXT TASK*****\n\n4: write the notes")),
    program(
        "camel", around("Tool Execution: search_wiki\n\tArgs: {'entity': 'harbour'}\n\tResult: {body}\n"), PROSE, closed=False
    ),
    program("pydantic-ai", around("Plain text from `read_notes` (retry 0):\n\n{body}"), PROSE, closed=False),
    program("semantic-kernel", around("[FUNCTION RESULT: Notes-Read]\n{body}\n[/FUNCTION RESULT]"), PROSE),
    program("bedrock-agent", around("<fnr><results><tool>notes</tool><data>{body}</data></results></fnr>"), PROSE),
    # browsers, screens, speech
    program("stagehand", around("Extraction from https://harbour.example finished:\n\n{body}\n\n(4 elements left out)"), PROSE),
    program(
        "playwright-mcp",
        line_by_line(
            "  - text: ",
            before="### Page state\n- Page URL: https://harbour.example/\n- Page Title: Harbour\n- Page Snapshot:\n```yaml\n- generic [ref=e2]:\n",
            after="\n```",
        ),
        PROSE,
    ),
    program("set-of-marks", line_by_line("[[3]] <p> ", "[[4]] <p> ", before="Tab 1 | Harbour | https://harbour.example/\n")),
    program("voice-agent", around("(transcribed from the caller's line, confidence 0.83)\n{body}\n(end of the line)"), TALK),
    program("computer-use", around("screenshot taken at 1280x800; text on it:\n| {body}"), PROSE, closed=False),
    # servers and events
    program("mcp-resource", around("resource://notes/17 (text/plain)\n\n{body}"), PROSE, closed=False),
    program(
        "mcp-prompt",
        lambda lines: json.dumps(
            {"jsonrpc": "2.0", "id": 4, "result": {"content": [{"type": "text", "text": "\n".join(lines)}]}}, ensure_ascii=False
        ),
    ),
    program(
        "webhook",
        lambda lines: (
            "POST /hooks/ci\nX-Event: comment\n\n"
            + json.dumps({"action": "created", "comment": {"body": "\n".join(lines)}}, ensure_ascii=False, indent=2)
        ),
    ),
    program("cron", around("Scheduled job `digest` ran at 2026-03-01 06:00 and left this on its pipe:\n{body}"), closed=False),
    program("yaml-result", line_by_line("  - ", before="tool: read_notes\nstatus: ok\nlines:\n"), PROSE),
    program("toml-result", around('[result]\nname = "read"\ntext = """\n{body}\n"""'), PROSE),
    # retrieval
    program(
        "rag-en",
        around("Below are excerpts from our knowledge base.\n\n(1) {body}\n\nUsing them, reply to: when is breakfast?"),
        PROSE,
        closed=False,
    ),
    program(
        "rag-de",
        around("Hier sind Auszüge aus der Wissensdatenbank:\n\n{body}\n\nFrage: Wann gibt es Frühstück?"),
        PROSE,
        closed=False,
    ),
    program(
        "rag-fr",
        around("Voici des extraits de documents :\n\n{body}\n\nQuestion : à quelle heure est le petit-déjeuner ?"),
        PROSE,
        closed=False,
    ),
    program("rag-zh", around("以下是检索到的资料：\n\n{body}\n\n问题：早餐几点开始？"), PROSE, closed=False),
    program("rag-ko", around("검색된 문서:\n\n{body}\n\n질문: 아침 식사는 몇 시인가요?"), PROSE, closed=False),
    program("rag-scores", line_by_line("score=0.81 id=a17 | ", "score=0.77 id=b02 | "), PROSE),
    program("perplexity", line_by_line("【1】", "【2】"), PROSE),
    program("memory-facts", line_by_line("- [2026-03-01] ", before="Long-term memory (retrieved):\n"), PROSE, closed=False),
    # what people paste
    pasted("teams", line_by_line("[Mon 10:02 AM] Alice Smith\n", "[Mon 10:05 AM] Bob Stone\n"), TALK, closed=False),
    pasted("matrix", line_by_line("@alice:corp.example: ", "@bob:corp.example: "), TALK),
    pasted("instagram", line_by_line("alice.s\n", "bob_st\n", between="\n10:02\n\n"), TALK, closed=False),
    pasted("mattermost-md", line_by_line("**alice** _10:02 AM_\n", "**bob** _10:05 AM_\n", between="\n\n"), TALK, closed=False),
    pasted("wechat", line_by_line("张伟 2026/3/1 10:02:11\n", "李娜 2026/3/1 10:05:40\n"), TALK, closed=False),
    pasted("mail-fr", line_by_line("> ", before="Le lun. 3 mars 2025 à 10:02, Bob <bob@corp.example> a écrit :\n>\n")),
    pasted("mail-ko", around("보낸사람: 김철수\n받는사람: 이영희\n날짜: 2025년 3월 3일\n제목: 객실\n\n{body}"), closed=False),
    pasted(
        "mbox",
        around(
            "From bob@corp.example Mon Mar  3 10:02:11 2025\nReturn-Path: <bob@corp.example>\nSubject: Rooms\nMessage-ID: <17@corp.example>\n\n{body}"
        ),
        closed=False,
    ),
    pasted(
        "service-now",
        around(
            "Number: INC0048213\nOpened by: bob.stone\nImpact: 3 - Low\nState: New\nShort description: Rooms\nWork notes:\n{body}"
        ),
        TALK,
        closed=False,
    ),
    pasted(
        "gitlab-mr",
        around("Bob Stone @bobstone · 3 days ago\nMaintainer\n{body}\nEdited 2 days ago by Ann Lee"),
        PROSE,
        closed=False,
    ),
    pasted(
        "gerrit",
        around("Patch Set 3: Code-Review-1\n\n(2 comments)\n\nFile notes.md:\n\nPatch Set #3, Line 12: {body}"),
        PROSE,
        closed=False,
    ),
    pasted(
        "kubectl-describe",
        line_by_line(
            "  Normal   Note  3m  kubelet  ",
            "  Warning  Note  2m  kubelet  ",
            before="Events:\n  Type     Reason  Age  From  Message\n  ----     ------  ---  ----  -------\n",
        ),
    ),
    pasted(
        "docker-build", line_by_line("#8 0.412 ", "#8 0.561 ", before="#8 [4/7] RUN cat notes.md\n", after="\n#8 DONE 0.6s")
    ),
    pasted(
        "github-actions",
        line_by_line(
            "2026-03-01T10:02:11.1234567Z ",
            before="2026-03-01T10:02:10.0000000Z ##[group]Run cat notes.md\n",
            after="\n2026-03-01T10:02:12.0000000Z ##[endgroup]",
        ),
    ),
    pasted("powershell", around("PS C:\\work> Get-Content notes.txt\n{body}\nPS C:\\work>"), SHELL),
    pasted("r-console", line_by_line('[1] "', before='> readLines("notes.txt")\n', after='"', between='"\n[1] "'), SHELL),
    pasted("code-comment", line_by_line("// ", before="// notes.js\n", after="\nexport const notes = 17;")),
    pasted("python-docstring", around('def notes():\n    """\n{body}\n    """\n    return 17')),
    pasted("latex", around("\\begin{quote}\n{body}\n\\end{quote}")),
    pasted("obsidian-embed", around("%%\n![[notes]]\n%%\n\n{body}\n\n^block-17"), closed=False),
    pasted("ascii-box", line_by_line("│ ", before="╭────────────────────╮\n", after="\n╰────────────────────╯")),
    pasted("interview", line_by_line("Q: ", "A: "), TALK),
    pasted("minutes", line_by_line("10:02 – Alice – ", "10:05 – Bob – "), TALK),
)

FOURTH = (
    program(
        "magentic-one",
        around(
            "Address the request. The file surfer said:\n----\nAddress: file:///notes.md\nViewport position: Showing page 1 of 1.\n=======================\n{body}"
        ),
        PROSE,
        closed=False,
    ),
    program("swarm-handoff", around('{"assistant": "researcher"}\n~~~ report ~~~\n{body}\n~~~ end ~~~'), PROSE),
    program(
        "letta",
        lambda lines: json.dumps(
            {"type": "function_response", "time": "2026-03-01 10:02", "message": "\n".join(lines)}, ensure_ascii=False
        ),
    ),
    program("agentscope", around("system: <tool_result id='t1' name='fetch'>\n{body}\n</tool_result>"), PROSE),
    program(
        "kilo-terminal", around("# Terminal 1 (active)\n## Last command: `cat notes.md`\n### New output\n{body}\n# End"), SHELL
    ),
    program("warp-block", around("❯ cat notes.md\n{body}\n❯ (0.03s)")),
    program(
        "zed-context",
        around("<context>\nThe following items were attached:\n\n<files>\n```md notes.md\n{body}\n```\n</files>\n</context>"),
    ),
    program("amp", around("--- file: notes.md ---\n{body}\n--- end of file ---")),
    program("trae", around("toolcall_status: success\ntoolcall_result: |\n{body}"), closed=False),
    program("manus", around("event 14 · shell_exec · done\n{body}\n· · ·")),
    program("skyvern", around('Page text (3 of 9 frames):\n"""\n{body}\n"""\nGoal: book the cheapest room'), PROSE),
    program("firecrawl", around("## https://harbour.example\n\nScraped 2026-03-01\n\n{body}\n\n--- next page ---"), PROSE),
    program("exa", line_by_line("Highlight: ", before="Title: Harbour\nURL: https://harbour.example\nScore: 0.31\n"), PROSE),
    program("mcp-log", around("notifications/message level=info logger=notes data:\n{body}"), closed=False),
    program(
        "rag-es",
        around("Contexto recuperado de la base:\n\n{body}\n\nPregunta: ¿a qué hora es el desayuno?"),
        PROSE,
        closed=False,
    ),
    program("rag-ja", around("参考資料は次の通りです。\n\n{body}\n\n質問：朝食は何時からですか。"), PROSE, closed=False),
    program(
        "rag-pt", around("Trechos encontrados:\n\n{body}\n\nPergunta: a que horas é o café da manhã?"), PROSE, closed=False
    ),
    program("rag-cards", line_by_line("┃ ", before="┏━ card 1\n", after="\n┗━"), PROSE),
    program("citations", line_by_line('<cite id="1">', after="</cite>", between='</cite>\n<cite id="2">'), PROSE),
    program(
        "asr-json",
        lambda lines: "\n".join(
            json.dumps({"t": n, "speaker": n % 2, "text": each}, ensure_ascii=False) for n, each in enumerate(lines)
        ),
        TALK,
    ),
    program("ocr-boxes", line_by_line("(12, 40, 310, 52) 0.97 ", "(12, 60, 310, 72) 0.91 "), PROSE),
    program("sql-row", line_by_line("-[ RECORD 1 ]-\nid   | 17\nnote | ", "-[ RECORD 2 ]-\nid   | 18\nnote | "), PROSE),
    pasted(
        "viber", line_by_line("[ Monday, March 3, 2025 10:02 AM ] Alice: ", "[ Monday, March 3, 2025 10:05 AM ] Bob: "), TALK
    ),
    pasted("skype", line_by_line("[03.03.2025 10:02:11] alice.s: ", "[03.03.2025 10:05:40] bob.st: "), TALK),
    pasted(
        "intercom", line_by_line("Alice (Customer) at 10:02:\n", "Bob (Agent) at 10:05:\n", between="\n\n"), TALK, closed=False
    ),
    pasted("zendesk-thread", line_by_line("Bob Stone\nMar 3, 10:02\nPublic reply\n\n", between="\n\n"), TALK, closed=False),
    pasted(
        "mail-es",
        around(
            "De: Bob Stone <bob@corp.example>\nEnviado el: lunes, 3 de marzo de 2025 10:02\nPara: Ana Lee\nAsunto: Habitaciones\n\n{body}"
        ),
        closed=False,
    ),
    pasted("mail-ja", line_by_line("> ", before="2025年3月3日(月) 10:02 Bob <bob@corp.example>:\n\n")),
    pasted("nntp", line_by_line("| ", before="Bob Stone <bob@corp.example> writes:\n")),
    pasted("bugzilla", around("Comment 4 • Bob Stone • 3 years ago\n\n{body}"), PROSE, closed=False),
    pasted(
        "youtrack", around("BILL-17 State: Open, Type: Bug, Assignee: bob\n\n{body}\n\n2 comments, 1 vote"), PROSE, closed=False
    ),
    pasted("phabricator", around("bob added a comment.\nMar 3 2025, 10:02\n\n{body}"), PROSE, closed=False),
    pasted(
        "syslog-rfc5424",
        line_by_line("<34>1 2026-03-01T10:02:11Z host billing 12 - - ", "<34>1 2026-03-01T10:02:12Z host mail 14 - - "),
    ),
    pasted("logfmt", line_by_line('level=info svc=billing msg="', after='"', between='"\nlevel=warn svc=mail msg="')),
    pasted(
        "windows-event",
        around(
            "Log Name:      Application\nSource:        Notes\nEvent ID:      17\nLevel:         Information\nDescription:\n{body}"
        ),
        SHELL,
        closed=False,
    ),
    pasted(
        "make-output",
        line_by_line("make[1]: ", before="make[1]: Entering directory '/repo'\n", after="\nmake[1]: Leaving directory '/repo'"),
    ),
    pasted(
        "pytest-captured",
        around(
            "----------------------------- Captured stdout call -----------------------------\n{body}\n=========================== short test summary info ============================"
        ),
        SHELL,
    ),
    pasted("lua-comment", around("--[[\n{body}\n]]")),
    pasted("blockquote-html", around('<blockquote cite="https://harbour.example">\n{body}\n</blockquote>')),
    pasted("rst-directive", line_by_line("   ", before=".. note::\n\n")),
    pasted("wiki-template", around("{{Quote|\n{body}\n|author=Bob}}")),
    pasted("legal-clauses", line_by_line("§ 4.1 ", "§ 4.2 "), PROSE),
)
