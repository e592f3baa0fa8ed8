#include "data/chat_turns.h"

#include <doctest/doctest.h>

#include <string>

#include "data_floor/small_tokenizer.h"
#include "support/expect_error.h"

namespace loongforge::data {
namespace {

using test::kChatMl;
using test::make_chat;

Conversation conversation(const std::string& messages) {
  Record record;
  record.value = support::Json::parse("{\"messages\":" + messages + "}", "record");
  record.where = "f:9";
  return read_messages(record);
}

// The words of each turn in [ ], what closes it in ( ).
std::string shown(std::string_view source, const std::string& messages) {
  const ChatText chat = render_turns(make_chat(source), conversation(messages));
  std::string text;
  for (const AssistantTurn& turn : chat.turns)
    text += "[" + chat.text.substr(turn.begin, turn.end - turn.begin) + "](" +
            chat.text.substr(turn.end, turn.closing_end - turn.end) + ")";
  return text;
}

const std::string kTwoTurns = R"([{"role":"user","content":"q"},{"role":"assistant","content":"a"},
    {"role":"user","content":"a"},{"role":"assistant","content":" b\n"}])";

// What Qwen3's template does: thoughts of all turns but the last are taken out, and the last turn
// is given an empty block for thoughts where it has none.
constexpr std::string_view kThinking =
    "{% for m in messages %}{{ '<|im_start|>' + m.role + '\\n' }}"
    "{% if m.role == 'assistant' %}{% set thoughts = '' %}{% set words = m.content %}"
    "{% if m.reasoning_content is string %}{% set thoughts = m.reasoning_content %}"
    "{% elif '</think>' in m.content %}"
    "{% set thoughts = m.content.split('</think>')[0].split('<think>')[-1].strip('\\n') %}"
    "{% set words = m.content.split('</think>')[-1].lstrip('\\n') %}{% endif %}"
    "{% if loop.last %}{{ '<think>\\n' + thoughts + '\\n</think>\\n\\n' }}{% endif %}{{ words }}"
    "{% if m.tool_calls %}{% for c in m.tool_calls %}{{ '\\n<call>' + c.name }}{% endfor %}{% "
    "endif %}"
    "{% else %}{{ m.content }}{% endif %}{{ '<|im_end|>\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

TEST_CASE("a template that repeats what is said") {
  CHECK(shown(kChatMl, kTwoTurns) == "[a](<|im_end|>\n)[ b\n](<|im_end|>\n)");
  const ChatText chat = render_turns(make_chat(kChatMl), conversation(kTwoTurns));
  // "a" is the second question as well: the first answer is where the assistant says it.
  CHECK(chat.turns[0].begin == chat.text.find("assistant\n") + 10);
}

TEST_CASE("a template that trims, and one that surrounds with spaces") {
  const std::string messages =
      R"([{"role":"user","content":"q"},{"role":"assistant","content":"\u3000 a b \n"}])";
  CHECK(shown("{% for m in messages %}{{ m.role + ':' + m.content | trim + '</s>' }}{% endfor %}",
              messages) == "[a b](</s>)");
  CHECK(shown("{% for m in messages %}{{ m.role }}: {{ m.content.strip() }} </s>{% endfor %}",
              messages) == "[a b]( </s>)");
}

TEST_CASE("what the template inserts is not the assistant's") {
  CHECK(shown(kThinking, kTwoTurns) == "[a](<|im_end|>\n)[ b\n](<|im_end|>\n)");
}

TEST_CASE("thoughts: the assistant's own stay, those that the template drops are not looked for") {
  const std::string messages = R"([{"role":"user","content":"q"},
      {"role":"assistant","content":"<think>\nx\n</think>\n\nfirst"},{"role":"user","content":"r"},
      {"role":"assistant","content":"<think>y</think>last"}])";
  CHECK(shown(kThinking, messages) ==
        "[first](<|im_end|>\n)[<think>\ny\n</think>\n\nlast](<|im_end|>\n)");
  const std::string apart = R"([{"role":"user","content":"q"},
      {"role":"assistant","content":"last","reasoning_content":"y"}])";
  CHECK(shown(kThinking, apart) == "[<think>\ny\n</think>\n\nlast](<|im_end|>\n)");
  // An empty block that the record itself has is learnt, the one that the template adds is not.
  const std::string empty = R"([{"role":"user","content":"q"},
      {"role":"assistant","content":"<think>\n\n</think>\n\nlast"}])";
  CHECK(shown(kThinking, empty) == "[<think>\n\n</think>\n\nlast](<|im_end|>\n)");
}

TEST_CASE("calls of tools belong to the words") {
  const std::string messages = R"([{"role":"user","content":"q"},
      {"role":"assistant","content":"see","tool_calls":[{"name":"f"},{"name":"g"}]},
      {"role":"tool","content":"7"},{"role":"assistant","content":"done"}])";
  CHECK(shown(kThinking, messages) == "[see\n<call>f\n<call>g](<|im_end|>\n)[done](<|im_end|>\n)");
}

TEST_CASE("a template that leaves tools out is refused, not learnt from") {
  const std::string asked = R"([{"role":"user","content":"q"},)";
  const std::string called =
      asked + R"({"role":"assistant","content":null,"tool_calls":[{"name":"f"}]}])";
  const std::string answered =
      asked + R"({"role":"assistant","content":"x"},{"role":"tool","content":"7"},
      {"role":"assistant","content":"done"}])";
  const auto refuses = [](std::string_view source, const Conversation& one, const char* what) {
    LF_CHECK_ERROR(render_turns(make_chat(source), one), ErrorCode::kBadData, what);
    LF_CHECK_ERROR(render_chat(make_chat(source), one, true), ErrorCode::kBadData, what);
  };
  refuses(kChatMl, conversation(called),
          "f:9: the chat template leaves out the tool calls of messages[1]");
  Conversation with_tools = conversation(asked + R"({"role":"assistant","content":"a"}])");
  CHECK(render_turns(make_chat(kChatMl), with_tools).turns.size() == 1);
  with_tools.tools = support::Json::parse(R"([{"name":"f"}])", "tools");
  refuses(kChatMl, with_tools, "leaves out the tools of this conversation");
  const std::string_view no_tool_role =
      "{% for m in messages %}{% if m.role != 'tool' %}<{{ m.role }}>{{ m.content }}{% endif %}"
      "{% endfor %}";
  refuses(no_tool_role, conversation(answered), "leaves out the tool's answer in messages[2]");
  const std::string_view marked =
      "{% for m in messages %}{% generation %}{{ m.content }}{% endgeneration %}{% endfor %}";
  LF_CHECK_ERROR(render_turns(make_chat(marked), conversation(called)), ErrorCode::kBadData,
                 "leaves out the tool calls");
}

TEST_CASE("what closes a turn does not reach into the next one") {
  // Without an end token the next turn's header follows at once.
  const std::string_view bare = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}";
  CHECK(shown(bare, kTwoTurns) == "[a]()[ b\n]()");
  // A token that only the whole conversation ends with.
  const std::string_view last =
      "{% for m in messages %}[{{ m.role }}]{{ m.content }}|{% endfor %}</s>";
  CHECK(shown(last, kTwoTurns) == "[a](|)[ b\n](|</s>)");
}

TEST_CASE("turns that say nothing are left out, and a conversation may end with a question") {
  CHECK(shown(kChatMl, R"([{"role":"user","content":"q"},{"role":"assistant","content":" "},
      {"role":"user","content":"r"},{"role":"assistant","content":"a"},
      {"role":"user","content":"s"}])") == "[a](<|im_end|>\n)");
  CHECK(shown(kChatMl, R"([{"role":"assistant","content":"first"}])") == "[first](<|im_end|>\n)");
}

TEST_CASE("generation blocks say it themselves") {
  const std::string_view source =
      "{% for m in messages %}<{{ m.role }}>{% if m.role == 'assistant' %}"
      "{% generation %}{{ m.content }}</s>{% endgeneration %}{% else %}{{ m.content }}{% endif %}"
      "{% endfor %}";
  CHECK(shown(source, kTwoTurns) == "[a</s>]()[ b\n</s>]()");
}

TEST_CASE("words that the template changes end in an error that names the record") {
  const auto bad = [](std::string_view source, const char* text) {
    LF_CHECK_ERROR(render_turns(make_chat(source), conversation(kTwoTurns)), ErrorCode::kBadData,
                   text);
  };
  bad("{% for m in messages %}{{ m.content | upper }}{% endfor %}",
      "f:9: the assistant's text of messages[1] cannot be located");
  bad("{% for m in messages %}{{ m.content }} {{ m.content }}{% endfor %}", "cannot be located");
  bad("{{ messages[0].content }}", "f:9: the assistant's text of messages[1]");
  bad("{% for m in messages %}{{ m.content | replace('a', 'c') }}|{% endfor %}", "changes it");
  bad("{% for m in messages %}{{ m.content }}|{{ m.content | length }}{% endfor %}",
      "f:9: the assistant's text of messages[1] cannot be located");
  bad("{{ raise_exception('roles must alternate') }}", "f:9: the chat template refuses");
  bad("{{ raise_exception('roles must alternate') }}", "roles must alternate");
}

TEST_CASE("the day does not change a dataset") {
  const std::string_view dated =
      "{% if not date_string is defined %}{% set date_string = strftime_now('%d %b %Y') %}"
      "{% endif %}{{ date_string }}{% for m in messages %}{{ m.content }}{% endfor %}";
  CHECK(render_chat(make_chat(dated), conversation(kTwoTurns), false).starts_with("26 Jul 2024"));
}

}  // namespace
}  // namespace loongforge::data
