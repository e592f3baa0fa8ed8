#include "convert/roles.h"

#include <doctest/doctest.h>

using namespace loongforge;
using quant::TensorRole;

TEST_CASE("roles come from the graph; the first use counts, the last node is the head") {
  ir::Graph graph;
  const auto node = [&graph](const char* op, std::map<std::string, std::string> params) {
    ir::Node& added = graph.nodes.emplace_back();
    added.op = op;
    added.params = std::move(params);
  };
  node("embedding", {{"weight", "e"}});
  node("rms_norm", {{"weight", "n"}});
  node("linear", {{"weight", "w"}, {"bias", "b"}});
  node("linear", {{"weight", "h"}});
  auto roles = convert::tensor_roles(graph);
  CHECK(roles.at("e") == TensorRole::kEmbedding);
  CHECK(roles.at("n") == TensorRole::kNorm);
  CHECK(roles.at("w") == TensorRole::kLinear);
  CHECK(roles.at("b") == TensorRole::kBias);
  CHECK(roles.at("h") == TensorRole::kHead);
  graph.nodes.back().params["weight"] = "e";
  CHECK(convert::tensor_roles(graph).at("e") == TensorRole::kEmbedding);
}
