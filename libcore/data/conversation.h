// What a record of an instruction dataset says, whatever its format: messages between system, user,
// assistant and tools.
// Thread-safety: values. Invariants: messages is an array of at least one object with a role of
// system, user, assistant or tool and a content that is a string.
#pragma once

#include <cstddef>
#include <string>

#include "data/record_reader.h"
#include "support/json.h"

namespace loongforge::data {

struct Conversation {
  support::Json messages;  // as chat templates take them
  support::Json tools;     // null where the record names none
  std::string where;       // the record, for errors
  // The last user message ends in an alpaca record's input of this many bytes, after a line break;
  // 0: no input.
  size_t input_bytes = 0;
};

// REQUIRES: record.value is an object.
Conversation read_alpaca(const Record& record);
Conversation read_messages(const Record& record);
Conversation read_sharegpt(const Record& record);
std::string read_text_record(const Record& record);  // also of plain text files

// "tools" of a record: an array, or one as JSON text; null where there are none. Elements are left
// as they are: objects.
support::Json read_tools(const Record& record);
// The same; a bare function ({"name", "description", "parameters"}), as sharegpt files have it, is
// put into {"type": "function", "function": ...}, the form that chat templates expect.
support::Json read_wrapped_tools(const Record& record);
// The tool_calls of a sharegpt function_call: JSON text of one {"name", "arguments"} or an array
// of them. path: the text's name in errors.
support::Json read_calls(const std::string& text, const std::string& path,
                         const std::string& where);

// White space only, or nothing.
bool is_blank(std::string_view text);

// Something to learn is there: an assistant's turn that says or calls something.
bool has_answer(const Conversation& conversation);

}  // namespace loongforge::data
