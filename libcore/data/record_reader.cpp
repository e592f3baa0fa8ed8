#include "data/record_reader.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "support/printable.h"
#include "support/unicode.h"

namespace loongforge::data {
namespace {

using support::Json;

constexpr std::string_view kBlank = " \t\r\n";
constexpr const char* kJsonHint =
    "JSON lines hold one whole JSON object a line; a JSON array starts with [";

bool is_blank(std::string_view text) { return text.find_first_not_of(kBlank) == text.npos; }

std::string megabytes(size_t bytes) { return std::to_string(bytes >> 20) + " MB"; }

// Offset of the first fault counted from 1, as columns are.
void check_utf8(std::string_view text, const std::string& where) {
  const size_t at = support::find_invalid_utf8(text);
  if (at != support::kUtf8Valid)
    throw_bad_data(where, "byte " + std::to_string(at + 1) + " is not valid UTF-8",
                   "save the file as UTF-8");
}

// What a file is that is no text, by its first bytes; empty: nothing that is known.
std::string_view packed_kind(std::string_view bytes) {
  static constexpr std::pair<std::string_view, std::string_view> kKinds[] = {
      {"\x1F\x8B", "gzip"},
      {"PK\x03\x04", "zip"},
      {"\xFD"
       "7zXZ",
       "xz"},
      {"BZh", "bzip2"},
      {"\x28\xB5\x2F\xFD", "zstd"},
      {"PAR1", "Parquet"}};
  for (const auto& [magic, kind] : kKinds)
    if (bytes.starts_with(magic)) return kind;
  return {};
}

int64_t count_lines(std::string_view text) {
  return static_cast<int64_t>(std::count(text.begin(), text.end(), '\n'));
}

bool parses_as_object(std::string_view line) {
  try {
    return Json::parse(line, {}).is_object();
  } catch (const Error&) {
    return false;
  }
}

[[noreturn]] void wrong_type(const std::string& where, const std::string& path, const Json& value,
                             const char* expected) {
  throw_bad_data(where, "\"" + path + "\" is " + value.type_name() + ", not " + expected);
}

}  // namespace

RecordReader::RecordReader(std::string_view bytes, std::string name, Plain plain)
    : text_(bytes), name_(std::move(name)), plain_(plain) {
  if (const std::string_view kind = packed_kind(text_); plain_ == Plain::kNo && !kind.empty())
    throw_bad_data(name_, "is a file of " + std::string(kind),
                   kind == "Parquet" ? "write its records as JSON lines" : "unpack it first");
  if (text_.starts_with("\xFF\xFE") || text_.starts_with("\xFE\xFF"))
    throw_bad_data(at_line(1), "the text is UTF-16", "save the file as UTF-8");
  if (text_.starts_with("\xEF\xBB\xBF")) text_.remove_prefix(3);
  if (text_.empty()) throw_bad_data(name_, "the file is empty");
  if (is_blank(text_)) throw_bad_data(name_, "the file holds nothing but white space");
  tell_kind();
}

void RecordReader::tell_kind() {
  const size_t first = text_.find_first_not_of(kBlank);
  const std::string_view start = text_.substr(first);
  if (plain_ != Plain::kNo) {
    // Plain text may begin with a bracket too: only what is a record counts as JSON.
    const size_t second = start.find_first_not_of(kBlank, 1);
    const size_t third =
        second == start.npos ? second : start.find_first_not_of(kBlank, second + 1);
    if (start[0] == '[' && third != start.npos && start[second] == '{' && start[third] == '"')
      kind_ = Kind::kArray;
    else if (start[0] == '{' && parses_as_object(start.substr(0, start.find('\n'))))
      kind_ = Kind::kLines;
    else
      kind_ = Kind::kPlain;
    return;
  }
  if (start[0] != '[' && start[0] != '{') {
    const std::string_view line = start.substr(0, start.find_first_of("\r\n"));
    throw_bad_data(at_line(1 + count_lines(text_.substr(0, first))),
                   "neither a JSON array nor JSON lines: it starts with \"" +
                       support::printable(line, 40) + "\"",
                   "a file of plain text is named .txt");
  }
  kind_ = start[0] == '[' ? Kind::kArray : Kind::kLines;
}

std::string RecordReader::at_record(int64_t line) const {
  return name_ + ": record " + std::to_string(records_) + " (line " + std::to_string(line) + ")";
}

bool RecordReader::next(Record& record) {
  if (kind_ == Kind::kArray) return next_element(record);
  if (kind_ == Kind::kLines) return next_line(record);
  return next_paragraph(record);
}

RecordPlace RecordReader::place() const {
  return {std::min(position_, text_.size()), line_, records_, open_, after_comma_};
}

void RecordReader::go_to(const RecordPlace& place) {
  if (place.offset > text_.size())
    throw_bad_data(name_, "ends before byte " + std::to_string(place.offset),
                   "it is not the file that was read before");
  position_ = place.offset;
  line_ = place.line;
  records_ = place.records;
  after_comma_ = place.after_comma;
  open_ = place.open;
}

// The next line, without its end; line_ is then its number + 1.
bool RecordReader::take_line(std::string_view& line) {
  if (position_ >= text_.size()) return false;
  const size_t end = std::min(text_.find('\n', position_), text_.size());
  line = text_.substr(position_, end - position_);
  if (line.size() > kMaxRecordBytes)
    throw_bad_data(at_line(line_), "the line is longer than " + megabytes(kMaxRecordBytes));
  if (line.ends_with('\r')) line.remove_suffix(1);
  position_ = end + 1;
  ++line_;
  return true;
}

bool RecordReader::next_line(Record& record) {
  std::string_view line;
  do {
    if (!take_line(line)) return false;
  } while (is_blank(line));
  record.number = line_ - 1;
  record.where = at_line(record.number);
  record.text.clear();
  check_utf8(line, record.where);
  const bool cut_off = position_ > text_.size();  // the last line, and no line end after it
  try {
    record.value = Json::parse(line, record.where);
  } catch (const Error& e) {
    // A second value stands after a whole one.
    const bool followed = e.message().find("; expected end of input") != std::string::npos;
    throw_bad_data(record.where, e.message(),
                   cut_off && !followed ? "the file ends in this line: is it complete?"
                   : e.message().starts_with("invalid JSON") ? kJsonHint
                                                             : "");
  }
  if (!record.value.is_object())
    throw_bad_data(record.where,
                   std::string("the record is ") + record.value.type_name() + ", not object");
  return true;
}

bool RecordReader::next_paragraph(Record& record) {
  std::string_view line;
  do {
    if (!take_line(line)) return false;
  } while (is_blank(line));
  record.number = line_ - 1;
  record.where = at_line(record.number);
  record.value = Json();
  record.text.clear();
  do {
    check_utf8(line, at_line(line_ - 1));
    if (!record.text.empty()) record.text += '\n';
    record.text += line;
    if (record.text.size() > kMaxRecordBytes)
      throw_bad_data(record.where, "the paragraph is longer than " + megabytes(kMaxRecordBytes),
                     "separate paragraphs by blank lines");
  } while (plain_ == Plain::kParagraphs && take_line(line) && !is_blank(line));
  return true;
}

void RecordReader::skip_space() {
  const size_t next = std::min(text_.find_first_not_of(kBlank, position_), text_.size());
  line_ += count_lines(text_.substr(position_, next - position_));
  position_ = next;
}

// Where the object at position_ ends; npos when the file ends first.
size_t RecordReader::element_end() const {
  size_t depth = 0;
  for (size_t i = position_; i < text_.size(); ++i) {
    const char c = text_[i];
    if (c == '"') {
      for (++i; i < text_.size() && text_[i] != '"'; ++i)
        if (text_[i] == '\\') ++i;
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if ((c == '}' || c == ']') && --depth == 0) {
      return i + 1;
    }
  }
  return std::string_view::npos;
}

// Json reports lines within the element: the file's are needed.
Json RecordReader::parse_element(std::string_view element, bool whole) const {
  constexpr std::string_view kMark = "element";
  const char* hint = whole ? "" : "the file ends inside this record: is it complete?";
  Json value;
  try {
    value = Json::parse(element, kMark);
  } catch (const Error& e) {
    int64_t line = line_;
    if (e.where().size() > kMark.size()) line += std::stoll(e.where().substr(kMark.size() + 1)) - 1;
    throw_bad_data(at_record(line), e.message(), hint);
  }
  if (!whole) throw_bad_data(at_record(line_), "the record has no end", hint);
  return value;
}

void RecordReader::element_separator() {
  skip_space();
  after_comma_ = false;
  if (position_ >= text_.size())
    throw_bad_data(at_record(line_), "the array has no end after this record",
                   "the file ends early: is it complete?");
  if (text_[position_] == ',') {
    ++position_;
    after_comma_ = true;
  } else if (text_[position_] != ']') {
    throw_bad_data(at_record(line_), "expected , or ] after this record");
  }
}

bool RecordReader::next_element(Record& record) {
  skip_space();
  if (!open_ && records_ > 0) return false;
  if (!open_) {
    ++position_;  // [
    open_ = true;
    skip_space();
  }
  if (position_ < text_.size() && text_[position_] == ']') {
    if (after_comma_) throw_bad_data(at_record(line_), "expected a record after the comma");
    if (records_ == 0) throw_bad_data(at_line(line_), "the array is empty");
    ++position_;
    open_ = false;
    skip_space();
    if (position_ < text_.size()) throw_bad_data(at_line(line_), "text after the array's end");
    return false;
  }
  ++records_;
  if (position_ >= text_.size())
    throw_bad_data(at_record(line_), "the array has no end",
                   "the file ends early: is it complete?");
  if (text_[position_] != '{')
    throw_bad_data(at_record(line_), std::string("a record must be an object, it starts with ") +
                                         support::printable(text_.substr(position_, 1)));
  const size_t end = element_end();
  const bool whole = end != std::string_view::npos;
  // What has no end is looked at only to say where it goes wrong.
  const std::string_view element =
      text_.substr(position_, whole ? end - position_ : kMaxRecordBytes);
  if (element.size() > kMaxRecordBytes)
    throw_bad_data(at_record(line_), "the record is longer than " + megabytes(kMaxRecordBytes));
  record.number = records_;
  record.where = at_record(line_);
  record.text.clear();
  check_utf8(element, record.where);
  record.value = parse_element(element, whole);
  line_ += count_lines(element);
  position_ += element.size();
  element_separator();
  return true;
}

const std::string& string_member(const Json& object, std::string_view key, const std::string& where,
                                 std::string_view path) {
  const std::string name(path.empty() ? key : path);
  const Json* value = object.find(key);
  if (value == nullptr) throw_bad_data(where, "key \"" + name + "\" is missing");
  if (!value->is_string()) wrong_type(where, name, *value, "string");
  return value->as_string();
}

std::string optional_string(const Json& object, std::string_view key, const std::string& where,
                            std::string_view path) {
  const Json* value = object.find(key);
  if (value == nullptr || value->is_null()) return {};
  return string_member(object, key, where, path);
}

const Json::Array& array_member(const Json& object, std::string_view key,
                                const std::string& where) {
  const Json* value = object.find(key);
  if (value == nullptr) throw_bad_data(where, "key \"" + std::string(key) + "\" is missing");
  if (!value->is_array()) wrong_type(where, std::string(key), *value, "array");
  return value->as_array();
}

}  // namespace loongforge::data
