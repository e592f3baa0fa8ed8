// The template language. Oracle: what Jinja2 itself renders (golden files); limits and faults are
// ours.
#include <string>

#include "data/chat_template.h"
#include "data_floor/golden.h"

namespace loongforge::data {
namespace {

using support::Json;
using test::has;

std::string render(const std::string& source, const Json& context = Json::object()) {
  return ChatTemplate::from_source(source, Json(), "t").render_context(context).text;
}

std::string fault(const std::string& source) {
  return test::error_of([&] { render(source); }).message();
}

TEST_CASE("templates render as Jinja2 renders them") {
  size_t count = 0;
  for (const char* file : {"jinja.jsonl", "jinja_more.jsonl"}) {
    Json context;
    for (const Json& line : test::read_lines(test::golden(file))) {
      if (const Json* given = line.find("context")) {
        context = *given;
        continue;
      }
      const std::string& source = line.at("template").as_string();
      CAPTURE(source);
      ++count;
      if (const Json* error = line.find("error")) {
        CHECK(test::error_of([&] { render(source, context); }).message() == error->as_string());
      } else {
        CHECK(render(source, context) == line.at("text").as_string());
      }
    }
  }
  CHECK(count == 19 + 106);
}

TEST_CASE("what Python or Jinja refuses is refused") {
  CHECK(has(fault("{{ 'a' + 1 }}"), "'str' and 'int'"));
  CHECK(has(fault("{{ [1] + (2,) }}"), "'list' and 'tuple'"));
  CHECK(has(fault("{{ 1 < 'a' }}"), "cannot be ordered"));
  CHECK(has(fault("{{ 1 // 0 }}"), "division by zero"));
  CHECK(has(fault("{{ zz.foo }}"), "'zz' is undefined"));
  CHECK(has(fault("{{ zz() }}"), "'zz' is undefined"));
  CHECK(has(fault("{{ {}.a.b }}"), "has no attribute 'a'"));
  CHECK(has(fault("{% for x in 5 %}{% endfor %}"), "'int' object is not iterable"));
  CHECK(has(fault("{% for a, b in [(1, 2, 3)] %}{% endfor %}"), "3 values cannot be unpacked"));
  CHECK(has(fault("{{ [].append(1) }}"), "not allowed"));
  CHECK(has(fault("{{ {}.update({}) }}"), "not allowed"));
  CHECK(has(fault("{{ ''.__class__.x }}"), "not allowed"));
  CHECK(has(fault("{{ zz | tojson }}"), "Undefined is not JSON serializable"));
  CHECK(has(fault("{{ 'x' is foo }}"), "'is foo' is not supported"));
  CHECK(has(fault("{% macro m(a) %}{% endmacro %}{{ m(1, 2) }}"), "takes not more than 1"));
  CHECK(has(fault("{% macro m(a) %}{% endmacro %}{{ m(z=2) }}"), "no keyword argument 'z'"));
  CHECK(has(fault("{% set x.y = 1 %}"), "no namespace"));
  CHECK(has(fault("{{ [1, 2] | select | length }}"), "'generator' has no length"));
  CHECK(has(fault("{{ 9223372036854775807 + 1 }}"), "64 bits"));
  CHECK(has(fault("{{ {[]: 1} }}"), "cannot be a key"));
}

TEST_CASE("syntax faults name what stands there") {
  CHECK(has(fault("{% if x %}"), "{% if %} is never closed"));
  CHECK(has(fault("{{ a b }}"), "found 'b'"));
  CHECK(has(fault("{{ }}"), "expected an expression"));
  CHECK(has(fault("{% endif %}"), "misplaced tag {% endif %}"));
  CHECK(has(fault("{% break %}"), "outside a loop"));
  CHECK(has(fault("{% for x in y %}{% macro m() %}{% break %}{% endmacro %}{% endfor %}"),
            "outside a loop"));
  CHECK(has(fault("{{ (1, 2 }}"), "unexpected '}'"));
  CHECK(has(fault("{# open"), "missing end of comment"));
  CHECK(has(fault("{% raw %} x"), "missing end of raw"));
  CHECK(has(fault("{{ 1"), "never closed"));
  CHECK(has(fault("{{ '\\ud800' }}"), "bad escape"));
  CHECK(has(fault("{{ 99999999999999999999 }}"), "no integer of 64 bits"));
  CHECK(has(fault("{% set true = 1 %}"), "no name"));
  CHECK(has(fault("{{ f(a=1, 2) }}"), "order"));
}

TEST_CASE("no template runs away with time, memory or stack") {
  CHECK(has(fault("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}"), "recurses too deep"));
  CHECK(has(fault("{{ range(1000000) }}"), "100000"));
  CHECK(has(fault("{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}"
                  "{% endfor %}"),
            "step limit"));
  CHECK(has(fault("{{ 'x' * 99999999999 }}"), "too much text"));
  CHECK(has(fault("{% set ns = namespace(s='xxxxxxxx') %}{% for i in range(60) %}"
                  "{% set ns.s = ns.s ~ ns.s %}{% endfor %}"),
            "too much text"));
  CHECK(has(fault("{% set ns = namespace(l=[]) %}{% for i in range(9999) %}"
                  "{% set ns.l = [ns.l] %}{% endfor %}"),
            "nest more than"));
  CHECK(has(fault("{% set ns = namespace(l=[1]) %}{% for i in range(100) %}"
                  "{% set ns.l = [ns.l, ns.l] %}{% endfor %}{{ ns.l }}"),
            "limit"));
  CHECK(has(fault("{% set ns = namespace() %}{% for i in range(99999) %}"
                  "{% set ns.n = namespace(p=ns.n) %}{% endfor %}"),
            "too many namespaces"));
  CHECK(has(fault("{{ " + std::string(5000, '(') + "1" + std::string(5000, ')') + " }}"), "deep"));
  std::string chain = "{{ a";
  for (int i = 0; i < 5000; ++i) chain += ".b";
  CHECK(has(fault(chain + " }}"), "deep"));
  std::string nested;
  for (int i = 0; i < 5000; ++i) nested += "{% if x %}";
  CHECK(has(fault(nested), "deep"));
  CHECK(has(fault("{{ '%9999999d' % 1 }}"), "too wide"));
  CHECK(has(fault("{{ 'a'.center(99999999) }}"), "too much"));
}

TEST_CASE("values that hold themselves are freed") {
  // The leak checker of the sanitizer build is the judge.
  CHECK(render("{% set ns = namespace() %}{% set ns.self = ns %}"
               "{% macro m() %}{{ m.name }}{% endmacro %}{{ m() }}"
               "{% for i in [1] %}{% set x = loop.changed(loop) %}{% set ns.l = loop %}"
               "{% endfor %}") == "m");
}

}  // namespace
}  // namespace loongforge::data
