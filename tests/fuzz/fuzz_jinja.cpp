// A chat template: parsed, and rendered over a conversation. Endless loops and giant texts must
// end.
#include "data/chat_template.h"
#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace loongforge;
  using support::Json;
  static const Json messages = Json::parse(
      R"([{"role":"system","content":"s"},{"role":"user","content":"Hi"},{"role":"assistant","content":"a <b>"},{"role":"user","content":"\u4f60"}])",
      "messages");
  static const Json tokens = Json::parse(R"({"bos_token":"<s>","eos_token":"</s>"})", "tokens");
  static const Json extra = Json::parse(
      R"({"tools":[{"type":"function","function":{"name":"f","parameters":{"x":1}}}],"date_string":"26 Jul 2024","n":3})",
      "extra");
  fuzz::expect_clean("chat_template.jinja", [&] {
    const auto chat =
        data::ChatTemplate::from_source(fuzz::text_of(data, size), tokens, "chat_template.jinja");
    static_cast<void>(chat.render_with_spans(messages, true, extra));
  });
  return 0;
}
