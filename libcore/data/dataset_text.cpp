// Text records: {"text": "..."}, or a paragraph of a plain text file.
#include <string>

#include "data/conversation.h"
#include "support/unicode.h"

namespace loongforge::data {

std::string read_text_record(const Record& record) {
  if (record.value.is_null()) return record.text;
  return string_member(record.value, "text", record.where);
}

bool is_blank(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    int length = 0;
    if (!support::is_white_space(support::decode_utf8(text.data() + i, &length))) return false;
    i += static_cast<size_t>(length);
  }
  return true;
}

}  // namespace loongforge::data
