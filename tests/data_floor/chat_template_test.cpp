#include "data/chat_template.h"

#include <cstdio>

#include "data/tokenizer.h"
#include "data_floor/golden.h"

namespace loongforge::data {
namespace {

using support::Json;
using test::has;

void check_renders(const ChatTemplate& chat, const std::string& file) {
  const std::vector<Json> lines = test::read_lines(test::golden(file));
  REQUIRE(lines.size() == 8);
  const Json extra = Json::parse(R"({"date_string": "26 Jul 2024"})", "extra");
  for (const Json& line : lines)
    CHECK(chat.render(line.at("messages"), line.at("add_generation_prompt").as_bool(), extra) ==
          line.at("text").as_string());
}

TEST_CASE("SmolLM2's template renders as the reference does, from GGUF and from files") {
  const std::string gguf = test::golden("smollm2_tokenizer.gguf").string();
  check_renders(ChatTemplate::load(gguf).value(), "smollm2.chat.jsonl");
  const test::TemporaryFolder folder;
  for (const auto& file : tokenizer_files(gguf)) folder.write(file.name, file.content);
  check_renders(ChatTemplate::load(folder.path().string()).value(), "smollm2.chat.jsonl");
}

TEST_CASE("the large models' templates render as the reference does") {
  for (const char* name : {"llama3", "qwen3"}) {
    const std::filesystem::path folder = test::shared_dir() / "data" / "tokenizers" / name;
    if (test::shared_dir().empty() || !std::filesystem::exists(folder / "tokenizer_config.json")) {
      std::printf("SKIPPED: chat template %s: no shared data (LOONGFORGE_TEST_DATA)\n", name);
      continue;
    }
    check_renders(ChatTemplate::load(folder.string()).value(), std::string(name) + ".chat.jsonl");
  }
}

TEST_CASE("a template's place: chat_template.jinja first, names choose, none is none") {
  const test::TemporaryFolder folder;
  const std::string path = folder.path().string();
  CHECK_FALSE(ChatTemplate::load(path).has_value());
  folder.write("tokenizer_config.json",
               R"({"bos_token": "<s>", "chat_template": [{"name": "default", "template": "d"},
                   {"name": "tool_use", "template": "{{ bos_token }}t"}]})");
  const Json none = Json::array();
  CHECK(ChatTemplate::load(path)->render(none, false) == "d");
  CHECK(ChatTemplate::load(path, "tool_use")->render(none, false) == "<s>t");
  CHECK(ChatTemplate::load(path)->suited(true).render(none, false) == "<s>t");
  CHECK(ChatTemplate::load(path)->suited(false).render(none, false) == "d");
  const Error e = test::error_of([&] { ChatTemplate::load(path, "rag"); });
  CHECK(has(e.what(), "no chat template named 'rag'"));
  CHECK(has(e.hint(), "default, tool_use"));
  folder.write("chat_template.jinja", "file {{ messages | length }}");
  folder.write("additional_chat_templates/rag.jinja", "rag");
  CHECK(ChatTemplate::load(path)->render(none, false) == "file 0");
  CHECK(ChatTemplate::load(path, "rag")->render(none, false) == "rag");
  CHECK(ChatTemplate::load(path, "rag")->suited(true).render(none, false) == "rag");
}

TEST_CASE("generation blocks give the byte ranges of what they produced") {
  const ChatTemplate chat = ChatTemplate::from_source(
      "{% for m in messages %}{{ m.role }}: {% if m.role == 'assistant' %}{% generation %}"
      "{{ m.content }}\n{% endgeneration %}{% else %}{{ m.content }}\n{% endif %}{% endfor %}",
      Json(), "t");
  CHECK(chat.has_generation_blocks());
  const Json messages = Json::parse(
      R"([{"role": "user", "content": "q"}, {"role": "assistant", "content": "\u4e2d"},
          {"role": "user", "content": "r"}, {"role": "assistant", "content": "two"}])",
      "m");
  const RenderedChat made = chat.render_with_spans(messages, false);
  REQUIRE(made.generation_spans.size() == 2);
  const auto part = [&](size_t i) {
    const auto [begin, end] = made.generation_spans[i];
    return made.text.substr(begin, end - begin);
  };
  CHECK(part(0) == "\xE4\xB8\xAD\n");
  CHECK(part(1) == "two\n");
  CHECK(made.text == "user: q\nassistant: \xE4\xB8\xAD\nuser: r\nassistant: two\n");
  const ChatTemplate hidden = ChatTemplate::from_source(
      "{% set x %}{% generation %}a{% endgeneration %}{% endset %}{{ x }}", Json(), "t");
  CHECK(has(test::error_of([&] { hidden.render(messages, false); }).what(),
            "{% generation %} inside a macro"));
}

TEST_CASE("errors name file, line and construct") {
  const auto parse = [](const char* source) {
    return test::error_of([&] { ChatTemplate::from_source(source, Json(), "dir/t.jinja"); });
  };
  const Error e = parse("a\nb\n{% include 'x' %}");
  CHECK(e.where() == "dir/t.jinja:3");
  CHECK(has(e.message(), "{% include %} is not supported"));
  CHECK(parse("\n\n{{ 'a }}").where() == "dir/t.jinja:3");
  CHECK(has(parse("\xFF").what(), "not valid UTF-8"));
  const auto run = [](const char* source) {
    const ChatTemplate chat = ChatTemplate::from_source(source, Json(), "t");
    return test::error_of([&] { chat.render(Json::array(), false); });
  };
  CHECK(run("\n\n{{ raise_exception('stop here') }}").message() == "stop here");
  CHECK(run("\n\n{{ raise_exception('stop here') }}").where() == "t:3");
  CHECK(run("\n{{ x | wordwrap }}").where() == "t:2");
  CHECK(has(run("{{ x | wordwrap }}").message(), "filter 'wordwrap' is not supported"));
}

TEST_CASE("the clock can be set") {
  const ChatTemplate chat = ChatTemplate::from_source("{{ strftime_now('%Y') }}", Json(), "t");
  CHECK(chat.render_context(Json::object(), 1721995200).text == "2024");
}

TEST_CASE("tools and documents are defined without a value, extra variables count over all") {
  const ChatTemplate chat = ChatTemplate::from_source(
      "{{ tools is none }} {{ bos_token }} {{ add_generation_prompt }} {{ zz is defined }}",
      Json::parse(R"({"bos_token": "<s>"})", "s"), "t");
  CHECK(chat.render(Json::array(), true) == "True <s> True False");
  CHECK(chat.render(Json::array(), false,
                    Json::parse(R"({"tools": [], "bos_token": "B", "zz": 1})", "e")) ==
        "False B False True");
}

}  // namespace
}  // namespace loongforge::data
