// The records of a dataset or prompt file, one after the other: a JSON array of objects, JSON
// lines, or plain text in paragraphs or lines. Which of them a file is, its content tells. A
// byte-order mark is skipped, CRLF counts as LF, blank lines as nothing. Every fault is an
// Error(kBadData) that names file:line, or the record's number (and line) in a JSON array.
// Thread-safety: one thread. Invariants: bytes outlive the reader; text given out is valid UTF-8.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "support/json.h"

namespace loongforge::data {

inline constexpr size_t kMaxRecordBytes = size_t{64} << 20;

struct Record {
  support::Json value;  // an object; null when the file is plain text
  std::string text;     // plain text: the paragraph or line
  int64_t number = 0;   // the line it starts on; in a JSON array its number from 1
  std::string where;    // for errors: "data.jsonl:7", "data.json: record 3 (line 12)"
};

// Where a reader stands: before the record that next() gives.
struct RecordPlace {
  uint64_t offset = 0;  // bytes, a byte-order mark not counted
  int64_t line = 1;
  int64_t records = 0;                     // elements of the array that were begun
  bool open = false, after_comma = false;  // of the array
};

class RecordReader {
 public:
  enum class Kind { kArray, kLines, kPlain };
  // What a file that is no JSON may be.
  enum class Plain { kNo, kParagraphs, kOnePerLine };

  // name: the file's, for errors.
  RecordReader(std::string_view bytes, std::string name, Plain plain);

  Kind kind() const { return kind_; }
  bool next(Record& record);  // false at the end
  // A place that an equal reader of the same bytes was at; Error(kBadData) beyond the end.
  RecordPlace place() const;
  void go_to(const RecordPlace& place);

 private:
  void tell_kind();
  bool take_line(std::string_view& line);
  bool next_line(Record& record);
  bool next_paragraph(Record& record);
  bool next_element(Record& record);
  size_t element_end() const;
  void element_separator();
  support::Json parse_element(std::string_view element, bool whole) const;
  void skip_space();
  std::string at_line(int64_t line) const { return name_ + ":" + std::to_string(line); }
  std::string at_record(int64_t line) const;

  std::string_view text_;
  std::string name_;
  Plain plain_;
  Kind kind_ = Kind::kLines;
  size_t position_ = 0;
  int64_t line_ = 1;     // of position_
  int64_t records_ = 0;  // elements of the array that were begun
  bool open_ = false;    // inside the array
  bool after_comma_ = false;
};

// Members of a record by what they have to be; the Error names record and key. path: how the key is
// called in errors ("messages[2].content").
const std::string& string_member(const support::Json& object, std::string_view key,
                                 const std::string& where, std::string_view path = {});
// Empty where the key is absent or null.
std::string optional_string(const support::Json& object, std::string_view key,
                            const std::string& where, std::string_view path = {});
const support::Json::Array& array_member(const support::Json& object, std::string_view key,
                                         const std::string& where);

}  // namespace loongforge::data
