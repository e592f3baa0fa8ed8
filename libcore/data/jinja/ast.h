// The syntax tree of a template. Plain data, built by the parser, read by the interpreter.
// Immutable afterwards, so one tree serves several threads.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "data/jinja/value.h"

namespace loongforge::data::jinja {

struct Expr;
using ExprPtr = std::unique_ptr<Expr>;

enum class ExprKind {
  kConst,
  kName,       // name
  kTuple,      // kids
  kList,       // kids
  kDict,       // kids: key, value, key, value ...
  kAttribute,  // kids[0].name
  kItem,       // kids[0][kids[1]]
  kSlice,      // kids: start, stop, step; null where absent
  kCall,       // kids[0](arguments)
  kFilter,     // kids[0] | name(arguments); kids empty in a filter block's head
  kTest,       // kids[0] is name(arguments)
  kCondition,  // kids[1] if kids[0] else kids[2]; kids[2] may be null
  kAnd,
  kOr,
  kNot,
  kNegate,
  kPlus,
  kCompare,          // kids[0] ops[0] kids[1] ops[1] kids[2] ...
  kBinary,           // kids[0] name kids[1]
  kConcat,           // kids, joined as text
  kNamespaceTarget,  // name.attribute, left of "=" only
};

struct Arguments {
  std::vector<ExprPtr> positional;
  std::vector<std::pair<std::string, ExprPtr>> named;
  ExprPtr rest, rest_named;  // *rest, **rest_named
};

struct Expr {
  ExprKind kind;
  int line;
  int height = 1;  // of the tree below; bounded, so recursion over it is
  std::string name;
  std::string attribute;
  Value constant;
  std::vector<ExprPtr> kids;
  std::vector<std::string> ops;
  Arguments arguments;
};

struct Stmt;
using Block = std::vector<std::unique_ptr<Stmt>>;

enum class StmtKind {
  kText,
  kOutput,
  kIf,
  kFor,
  kSet,
  kSetBlock,
  kMacro,
  kCallBlock,
  kFilterBlock,
  kWith,
  kGeneration,
  kBreak,
  kContinue,
};

struct Parameter {
  std::string name;
  ExprPtr otherwise;  // null: none
};

struct Stmt {
  StmtKind kind;
  int line;
  std::string text;  // kText: the text; kMacro: the name
  std::vector<ExprPtr>
      exprs;  // kOutput: parts; kIf: conditions; kWith: values; kSet, kCallBlock: value
  std::vector<ExprPtr> targets;  // kFor, kSet, kSetBlock: one; kWith: one a value
  std::vector<Block>
      bodies;  // kIf: one a condition, then perhaps the else; kFor: body, then perhaps the else
  ExprPtr iterable, condition;  // kFor
  ExprPtr filter;  // kSetBlock (may be null), kFilterBlock: filters over a null innermost input
  bool recursive = false;                          // kFor
  std::vector<Parameter> parameters;               // kMacro, kCallBlock
  bool uses_varargs = false, uses_kwargs = false;  // kMacro, kCallBlock
};

struct Template {
  Block body;
  bool has_generation = false;
};

}  // namespace loongforge::data::jinja
