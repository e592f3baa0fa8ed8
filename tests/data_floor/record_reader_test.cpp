#include "data/record_reader.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "support/expect_error.h"

namespace loongforge::data {
namespace {

using Plain = RecordReader::Plain;

struct Read {
  RecordReader::Kind kind;
  std::vector<Record> records;
};

Read read_all(std::string_view bytes, Plain plain = Plain::kNo) {
  RecordReader reader(bytes, "f", plain);
  Read read{reader.kind(), {}};
  for (Record record; reader.next(record);) read.records.push_back(record);
  Record after;
  CHECK_FALSE(reader.next(after));  // the end stays the end
  return read;
}

#define LF_BAD(bytes, text) LF_CHECK_ERROR(read_all(bytes), ErrorCode::kBadData, text)

TEST_CASE("a packed file and a second object on a line are called what they are") {
  const auto said = [](std::string_view bytes, Plain plain) {
    try {
      RecordReader reader(bytes, "f", plain);
      for (Record record; reader.next(record);) {
      }
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string("read");
  };
  CHECK(said(std::string_view("\x1F\x8B\x08\0\0", 5), Plain::kNo) ==
        "f: is a file of gzip; unpack it first");
  CHECK(said("PAR1\x15", Plain::kNo) == "f: is a file of Parquet; write its records as JSON lines");
  CHECK(said("BZh is a name", Plain::kParagraphs) == "read");
  const std::string two = said(R"({"a": 1}{"b": 2})", Plain::kNo);
  CHECK(two.ends_with("JSON lines hold one whole JSON object a line; a JSON array starts with ["));
  for (const char* cut : {R"({"a": "x)", R"({"a": 1, )", R"({"a": tr)"})
    CHECK_MESSAGE(said(cut, Plain::kNo).ends_with("is it complete?"), cut);
}

TEST_CASE("JSON lines: numbers of lines, blank ones counted and left out") {
  const Read read = read_all("\n{\"a\":1}\n   \n\t\n{\"a\":2}");
  CHECK(read.kind == RecordReader::Kind::kLines);
  REQUIRE(read.records.size() == 2);
  CHECK(read.records[0].number == 2);
  CHECK(read.records[1].number == 5);
  CHECK(read.records[1].where == "f:5");
  CHECK(read.records[1].value.find("a")->as_int() == 2);
}

TEST_CASE("a byte-order mark and CRLF are accepted") {
  const Read lines = read_all("\xEF\xBB\xBF{\"a\":1}\r\n\r\n{\"a\":2}\r\n");
  REQUIRE(lines.records.size() == 2);
  CHECK(lines.records[1].number == 3);
  const Read array = read_all("\xEF\xBB\xBF[\r\n{\"a\":1},\r\n{\"a\":2}\r\n]\r\n");
  CHECK(array.kind == RecordReader::Kind::kArray);
  REQUIRE(array.records.size() == 2);
  CHECK(array.records[1].where == "f: record 2 (line 3)");
}

TEST_CASE("a JSON array: numbers of records, brackets and escapes inside strings") {
  const Read read = read_all("[{\"a\":\"]}\\\"[{\"},\n {\"b\":[{\"c\":[1]}]} , {}]\n");
  REQUIRE(read.records.size() == 3);
  CHECK(read.records[0].number == 1);
  CHECK(read.records[0].value.find("a")->as_string() == "]}\"[{");
  CHECK(read.records[2].number == 3);
  CHECK(read.records[2].where == "f: record 3 (line 2)");
}

TEST_CASE("JSON lines that are wrong name their line") {
  LF_BAD("{\"a\":1}\n{\"a\":}\n{\"a\":3}\n", "f:2: invalid JSON at column 6");
  LF_BAD("{\"a\":1}\n{\"a\":\"x", "f:2: invalid JSON");
  LF_BAD("{\"a\":1}\n{\"a\":\"x", "the file ends in this line");
  LF_BAD("{\"a\":1}\n[1]\n", "f:2: the record is array, not object");
  LF_BAD("{\"a\":1}\n7\n", "f:2: the record is integer, not object");
  LF_BAD("{\"a\":1}\nnot JSON\n", "f:2: invalid JSON");
  LF_BAD("{\"a\":1} {\"a\":2}\n", "f:1: invalid JSON");
  LF_BAD("{\"a\":1,\"a\":2}\n", "f:1: duplicate key \"a\"");
  LF_BAD("{\n\"a\": 1\n}\n", "one whole JSON object a line");
  LF_BAD("{\"a\":1}\n{\"a\":\"\xC3(\"}\n", "f:2: byte 7 is not valid UTF-8");
  LF_BAD("{\"a\":1}\n{\"a\":\"\\ud800\"}\n", "f:2: invalid JSON");
  LF_BAD(std::string("{\"a\":1}\n{\"a\":\0}\n", 15), "f:2: invalid JSON: a zero byte");
}

TEST_CASE("arrays that are wrong name record and line") {
  LF_BAD("[{\"a\":1},\n{\"a\":2},\n{\"a\":\"cut o", "f: record 3 (line 3): invalid JSON");
  LF_BAD("[{\"a\":1},\n{\"a\":2},\n{\"a\":\"cut o", "the file ends inside this record");
  LF_BAD("[{\"a\":1},\n{\"a\":2},\n{\"a\":1", "the file ends inside this record");
  LF_BAD("[{\"a\":1},\n{\"a\":2}", "f: record 2 (line 2): the array has no end");
  LF_BAD("[{\"a\":1},\n{\"a\":2},\n", "f: record 3 (line 3): the array has no end");
  LF_BAD("[", "f: record 1 (line 1): the array has no end");
  LF_BAD("[{\"a\":1},\n{\"a\":2}\n{\"a\":3}]", "f: record 2 (line 3): expected , or ]");
  LF_BAD("[{\"a\":1},\n]", "f: record 1 (line 2): expected a record after the comma");
  LF_BAD("[ ,{\"a\":1}]", "f: record 1 (line 1): a record must be an object");
  LF_BAD("[{\"a\":1},\n\"two\"]", "f: record 2 (line 2): a record must be an object");
  LF_BAD("[\n{\"a\":1,\n\"b\":}]", "f: record 1 (line 3): invalid JSON at column 5");
  LF_BAD("[\n{\"a\":1,\n\"b\":]\n}]", "f: record 1 (line 3): invalid JSON");
  LF_BAD("[\n{\"a\":1,\n\"b\":\"\xFF\"}]", "f: record 1 (line 2): byte");
  LF_BAD("[ \n ]", "f:2: the array is empty");
  LF_BAD("[{\"a\":1}]\n[2]", "f:2: text after the array's end");
}

TEST_CASE("files that are nothing of it") {
  LF_BAD("", "f: the file is empty");
  LF_BAD("\xEF\xBB\xBF", "f: the file is empty");
  LF_BAD(" \r\n\n", "f: the file holds nothing but white space");
  LF_BAD("\ninstruction,output\n", "f:2: neither a JSON array nor JSON lines");
  LF_BAD(
      "\x7F"
      "ELF\x02",
      "f:1: neither a JSON array nor JSON lines");
  LF_BAD(std::string("\xFF\xFE{\0\"\0", 6), "f:1: the text is UTF-16");
}

TEST_CASE("lines and records over 64 MB") {
  const std::string body(kMaxRecordBytes, 'x');
  LF_BAD("{\"a\":1}\n{\"a\":\"" + body + "\"}\n", "f:2: the line is longer than 64 MB");
  LF_BAD("[{\"a\":1},{\"a\":\"" + body + "\"}]",
         "record 2 (line 1): the record is longer than 64 MB");
}

TEST_CASE("plain text: paragraphs and lines") {
  const std::string_view text = "\xEF\xBB\xBF\nfirst\r\n  second\n \n\nthird [x]\n";
  const Read paragraphs = read_all(text, Plain::kParagraphs);
  CHECK(paragraphs.kind == RecordReader::Kind::kPlain);
  REQUIRE(paragraphs.records.size() == 2);
  CHECK(paragraphs.records[0].text == "first\n  second");
  CHECK(paragraphs.records[0].where == "f:2");
  CHECK(paragraphs.records[0].value.is_null());
  CHECK(paragraphs.records[1].text == "third [x]");
  CHECK(paragraphs.records[1].number == 6);
  const Read lines = read_all(text, Plain::kOnePerLine);
  REQUIRE(lines.records.size() == 3);
  CHECK(lines.records[1].text == "  second");
  LF_CHECK_ERROR(read_all("a\nb \xC3\n", Plain::kParagraphs), ErrorCode::kBadData,
                 "f:2: byte 3 is not valid UTF-8");
}

TEST_CASE("where plain text is allowed, its content still tells") {
  CHECK(read_all("[1] a footnote", Plain::kParagraphs).kind == RecordReader::Kind::kPlain);
  CHECK(read_all("{x} is a set", Plain::kParagraphs).kind == RecordReader::Kind::kPlain);
  CHECK(read_all("[{\"text\":\"a\"}]", Plain::kParagraphs).kind == RecordReader::Kind::kArray);
  CHECK(read_all("{\"text\":\"a\"}\n", Plain::kParagraphs).kind == RecordReader::Kind::kLines);
}

}  // namespace
}  // namespace loongforge::data
