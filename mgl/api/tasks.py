"""Which requests are a client's own, and not what somebody says: titles, tags, follow-ups, guesses.

Open WebUI, LibreChat, Continue and others send them to the model of the chat, with the chat in the
prompt. They say so by the header X-MGL-Task or by ``metadata.task``; most are known by their form,
which is their client's default prompt.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from mgl.llm.base import Message

TASK: Final = "X-MGL-Task"

_OPEN_WEBUI: Final = re.compile(r"\s*(# User Request\s+)?### Task:(?!\s*Respond to the user query)")
_PARTS: Final = re.compile(r"<chat_history>|### Chat History|### Output|\*\*Output Rules")
_FORMS: Final = (
    # Open WebUI
    r"Create a concise, 3-5 word (title|phrase)\b.*",
    r"Your task is to reflect the speaker's likely facial expression through a fitting emoji\b.*",
    r"You have been provided with a set of responses from various models to the latest user query\b"
    r".*",
    # LibreChat
    r"Analyze this conversation and provide:(?>.*?detected language).*title.*",
    r"(Provide|Please generate|Write) a concise,? 5-word-or-less title for the conversation\b.*",
    r"Please generate a concise title \(max 40 characters\) for a conversation that starts\b.*",
    # Continue
    r"Given the following\b.*please reply with a title for the chat that is 3-4 words\b.*",
    # NextChat, Chatbox, Cherry Studio, LobeChat, HuggingChat
    r"Please generate a four to five word title summarizing our conversation\b.*",
    r"使用四到五个字直接返回这句话的简要主题.*",
    r"Based on the chat history, give this conversation a name\b.*",
    r".*\b(summari[sz]e|name) the (user's|given) (conversation|session|dialogue) (in|as|into) "
    r"a(n? \d+-word)? title\b.*",
    r".*需要将用户的会话总结为 ?10 ?个字以内的标题.*",
    r"You are a summarization AI\..*Summarize the user's request\b.*",
)
_FORM: Final = re.compile(f"\\s*({'|'.join(_FORMS)})", re.DOTALL | re.IGNORECASE)
_GAP: Final = re.compile(r"<\|?fim[_▁](prefix|suffix|begin|hole)\|?>|<｜fim▁begin｜>|^<PRE> ")
"""What a model that fills in code is given around the gap."""


def is_task(
    messages: Sequence[Message], metadata: Mapping[str, Any] | None, header: str | None
) -> bool:
    """Whether a request is a client's own."""
    given = header or (metadata or {}).get("task")
    if given and given != "default":
        return True
    if not messages or messages[-1].role != "user":
        return False
    last = messages[-1].content
    if _OPEN_WEBUI.match(last):
        return _PARTS.search(last) is not None
    systems = [each.content for each in messages if each.role == "system"]
    asked = [last, *(systems if len(messages) <= 2 else ())]
    return any(_FORM.match(each) or _GAP.search(each) for each in asked)
