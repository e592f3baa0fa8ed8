#include "graph/validate.h"

#include <doctest/doctest.h>

#include <functional>

#include "graph/tiny_models.h"
#include "support/expect_error.h"

using namespace loongforge;
using namespace loongforge::test;

namespace {

ir::Node& node(ir::Model& model, const std::string& op, size_t index = 0) {
  for (ir::Node& n : model.graph.nodes)
    if (n.op == op && index-- == 0) return n;
  throw std::runtime_error("no such node");
}

}  // namespace

TEST_CASE("a graph that fits gives the size of its vocabulary") {
  CHECK(graph::validate(TinyModel("llama3", "bf16").reader().model(), "m") == 512);
}

TEST_CASE("what cannot be run is named with its node") {
  const TinyModel tiny("llama2", "bf16");
  struct Fault {
    std::function<void(ir::Model&)> make;
    const char* says;
  };
  const Fault faults[] = {
      {[](ir::Model& m) { node(m, "swiglu").op = "gelu"; }, "op gelu is not known"},
      {[](ir::Model& m) { node(m, "swiglu").inputs.pop_back(); }, "takes 2 inputs, not 1"},
      {[](ir::Model& m) { node(m, "swiglu").inputs[1] = node(m, "linear").name; },
       "second input's columns"},
      {[](ir::Model& m) { node(m, "attention").inputs[0] = "nowhere"; }, "nowhere"},
      {[](ir::Model& m) { node(m, "attention").attrs.set("heads", 3); }, "attention"},
      {[](ir::Model& m) { node(m, "rope").attrs.set("head_dim", 6); }, "heads x head_dim"},
      {[](ir::Model& m) { node(m, "attention").attrs.set("window", -1); }, "window is negative"},
      {[](ir::Model& m) {
         node(m, "rope", 2)
             .attrs.set("scaling", support::Json::parse(R"({"rope_type": "linear"})", "t"));
       },
       "layers.1.self_attn.q_rope: rope scaling lacks factor"},
      {[](ir::Model& m) { node(m, "rms_norm").attrs.set("eps", 0.0); }, "eps must be positive"},
      {[](ir::Model& m) { node(m, "rms_norm").params.clear(); }, "lacks parameter weight"},
      {[](ir::Model& m) { node(m, "linear").params["weight"] = "model.norm.weight"; },
       "has rank 1"},
      {[](ir::Model& m) { m.graph.nodes.pop_back(); }, "the last node must be the output layer"},
      {[](ir::Model& m) { m.graph.nodes.clear(); }, "no nodes"},
  };
  for (const Fault& fault : faults) {
    ir::Model model = tiny.reader().model();
    fault.make(model);
    LF_CHECK_ERROR(graph::validate(model, "folder"), ErrorCode::kBadData, fault.says);
  }
}

TEST_CASE("only rope type dynamic looks at the longest document") {
  for (const std::string& name : golden_models()) {
    CAPTURE(name);
    CHECK(graph::depends_on_longest_document(TinyModel(name, "bf16").reader().model().graph) ==
          (name == "llama_dynamic"));
  }
}
