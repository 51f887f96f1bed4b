"""Patterns of texts that a user pasted: the words that introduce them, and how they begin and end."""

from __future__ import annotations

import re
from typing import Final

DOCUMENT: Final = re.compile(
    r"\b(?:e-?mails?|mail|letter|readme|manual|terms|log|chat|notice|memo|flyer|leaflet|poster|article|policy|"
    r"guide|handbook|form|"
    r"contract|newsletter|wiki|faq|transcript|excerpt|circular|brief|schreiben|anleitung|bedingungen|aushang|"
    r"zettel|rundschreiben|"
    r"protokoll|artikel|vertrag|auszug|nachricht|handbuch|prospekt|merkblatt|text)\b"
    r"|메일|문자|편지|공지|안내문|약관|설명서|채팅|쪽지|계약서|전단|게시|README|邮件|来信|通知|说明书|条款|聊天|"
    r"公告|手册|告示|短信|帖子|合同|传单|原文",
    re.IGNORECASE,
)
HANDED: Final = re.compile(
    r"\b(?:translat|summari[sz]|proofread|polish|shorten|rewrit|rephras|explain|make of|think of|look at|"
    r"read this|check (?:this|out)|listen to|see below|get a load|found|received|"
    r"copied|posted|pinned|"
    r"übersetz|lies|hör|sieh|zusammenfass|fass|korrigier|kürz|erklär|hältst|findest|schau|gefunden|bekommen|kopiert|hängt)"
    r"|번역|요약|교정|고쳐|어때|이거 보|좀 보|한번 보|읽어 보|어떻게 생각|받았|붙어|올라온|퍼 ?왔|건데 "
    r"|翻译|总结|校对|润色|看看|读读|听听|瞧|怎么看|觉得|收到|贴|转发|发来|看到",
    re.IGNORECASE,
)
PASTED: Final = re.compile(
    (
        r"(?:[\"“„«「『]|[-=*_]{3}|(?:from|to|subject|von|an|betreff|date|datum|보낸 ?사람|제목|发件人|"
        r"主题)\s?[:：]|\[?\d{1,2}:\d\d|"
        r"§|art(?:icle|ikel)?\.? \d|제\d+조|第.{1,3}条|"
        r"#{1,4}\s|[-*•]\s|\d+[.)]\s|<\w+>|>\s|dear\b|liebe[rs]?\b|hallo\b|sehr geehrte|hello\b|to all|"
        r"[^a-z\n]{20,}$|.{0,12}여러분|各位|尊敬的|.{0,8}님께)"
    ),
    re.IGNORECASE | re.MULTILINE,
)
SIGNED: Final = re.compile(r"\n[^\n.!?。！？:]{1,30}$")
SIGN: Final = re.compile(r"[=|{}\[\]<>_;/\\\d](?:(?<!\d)|(?!\d))")
SIGNS: Final = re.compile(r"\s*[|{\[]")
