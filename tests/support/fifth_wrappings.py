# ruff: noqa: E501
"""A fifth set of wrappings, copied in form from prompt templates of frameworks that the other sets leave out; written before it ran."""

from __future__ import annotations

from .unseen_wrappings import PROSE, SHELL, TALK, around, line_by_line, program

FIFTH = (
    program("agentbench-os", around("The output of the OS:\n{body}"), SHELL, closed=False),
    program("taskweaver", around("The execution result of the generated python code above is:\n{body}"), SHELL, closed=False),
    program("openmanus", around("Observed output of cmd `bash` executed:\n{body}"), SHELL, closed=False),
    program("terminus", around("Previous response had warnings:\nnone\n\nNew Terminal Output:\n{body}"), SHELL, closed=False),
    program("osworld", around("Given the info from accessibility tree as below:\ntag\tname\ttext\n{body}\nWhat's the next step that you will do to help with the task?"), PROSE),
    program("agentless", around("### File: notes.md ###\n{body}\n### End of file ###"), PROSE),
    program("auto-code-rover", around("Result of search_class:\nFound 1 class in total:\n- Search result 1:\n```\n<file>notes.py</file>\n{body}\n```"), SHELL),
    program("chatdev", around('Test Reports of Source Codes:\n"{body}"\nError Summary of Test Reports:\nnone'), SHELL),
    program("appworld", around("Output:\n```\n{body}\n```"), SHELL),
    program("mint", around("Observation:\n{body}\nYou have 3 steps left and 2 chances to propose solution left."), SHELL, closed=False),
    program("evo-agent", around("Iteration 2:\nExecuted tool calls:\n[{'function_name': 'read'}]\nResults:\n{body}"), PROSE, closed=False),
    program("interpreter-local", around('I executed that code. This was the output: """{body}"""\n\nWhat does this output mean / what code needs to be run next?'), SHELL),
    program("super-agi", around("Tool read_file returned: {body}"), PROSE, closed=False),
    program("agent-zero", around("~~~json\n{\"tool_name\": \"read\", \"tool_result\": \"\n{body}\n\"}\n~~~"), PROSE),
    program("anything-llm", around("Context:\n    [CONTEXT 0]:\n{body}\n[END CONTEXT 0]"), PROSE),
    program("open-webui", around('### Task:\nRespond to the user query using the provided context.\n\n<context>\n<source id="1" name="notes.md">{body}</source>\n</context>'), PROSE),
    program("dify", around("Use the following context as your learned knowledge, inside <context></context> XML tags.\n\n<context>\n{body}\n</context>"), PROSE),
    program("gpt4all", around("### Context:\nCollection: notes\nPath: notes.md\nExcerpt: {body}"), PROSE, closed=False),
    program("light-rag", line_by_line('{"reference_id": "1", "content": "', before="-----Document Chunks(DC)-----\n```json\n", after='"}\n```', between='"}\n'), PROSE),
    program("graph-rag", line_by_line("1|", "2|", before="-----Sources-----\nid|text\n"), PROSE),
    program("rag-flow", around("Here is the knowledge base:\n{body}\nThe above is the knowledge base."), PROSE),
    program("fast-gpt", around("使用 <Reference></Reference> 标记中的内容作为你的知识:\n\n<Reference>\n{body}\n</Reference>"), PROSE),
    program("max-kb", around("已知信息：\n{body}\n回答要求：\n- 请简洁\n问题：\n早餐几点开始？"), PROSE, closed=False),
    program("chatchat", around("<已知信息>{body}</已知信息>\n\n<问题>早餐几点开始？</问题>"), PROSE),
    program("mini-rag", line_by_line("## Document No: 1\n### Content: ", "## Document No: 2\n### Content: ", after="\nBased only on the above documents, please generate an answer for the user.\n## Answer:"), PROSE, closed=False),
    program("papers", around("%CONTEXT%\n{body}\n\n%Question%\nWhen is breakfast?\n\nAnswer:"), PROSE, closed=False),
    program("langflow", around("DOCUMENTS:\n{body}\n\nINSTRUCTIONS:\nAnswer the users QUESTION using the DOCUMENTS text above.\n\nQUESTION:\nWhen is breakfast?"), PROSE, closed=False),
    program("zephyr", around("<|user|>\nContext:\n{body}\n---\nNow here is the question you need to answer.\n\nQuestion: When is breakfast?\n</s>"), PROSE, closed=False),
    program("zep", line_by_line("  - ", before="FACTS and ENTITIES represent relevant context to the current conversation.\n\n<FACTS>\n", after="\n</FACTS>"), PROSE),
    program("hugging-chat", around("Today's date: 3 March 2026\n=====================\nSource (harbour.example):\n{body}\n====================="), PROSE),
    program("agent-gpt", around("The last task you completed is: read the notes\nThe result is: `{body}`"), PROSE, closed=False),
    program("document-list", line_by_line("[Document 1]\n", "[Document 2]\n", between="\n\n---\n\n"), TALK, closed=False),
)  # fmt: skip
