// Orders the work of a step: all forwards, the head with its loss, then backwards from the last op
// to the first, with the recomputation of what was not saved put right before it is needed.
//
// What is saved: block edges, and results of ops that are not cheap. With gradient checkpointing:
// block edges and the outputs of attention only. Gradients that meet are summed in the order in
// which the backward makes them; an op that can add into its input gradient (rms_norm on the
// residual stream) does it in the same pass.
#include <map>
#include <vector>

#include "graph/lower/lowered.h"
#include "graph/ops/ops.h"

namespace loongforge::graph {
namespace {

class Scheduler {
 public:
  explicit Scheduler(Plan* plan)
      : plan_(*plan),
        steps_(plan->list.steps),
        values_(plan->list.values),
        forward_(values_.size()),
        aux_(steps_.size()),
        pending_(values_.size()),
        wants_grad_(values_.size(), false) {}

  void run() {
    const bool train = plan_.options.mode == PlanMode::kTrain;
    for (size_t s = 0; s < steps_.size(); ++s) {
      bool wanted = steps_[s].op->trains();
      for (int v : steps_[s].in) wanted |= wants_grad_[static_cast<size_t>(v)];
      for (int v : steps_[s].out) wants_grad_[static_cast<size_t>(v)] = wanted;
      emit_forward(s, train && s + 1 == steps_.size());
    }
    if (!train) return;
    int block = -1;
    for (size_t s = steps_.size() - 1; s-- > 0;) {
      if (steps_[s].op->block() != block) {
        end_unit(block);
        block = steps_[s].op->block();
        recomputed_.clear();
      }
      emit_backward(s);
    }
    end_unit(block);
  }

 private:
  View new_view(const BufferSpec& spec) {
    plan_.buffers.push_back(spec);
    return {static_cast<int>(plan_.buffers.size()) - 1, 0, spec.cols};
  }

  std::vector<View> temps(const Op& op, Phase phase) {
    std::vector<View> views;
    for (const BufferSpec& spec : op.temps(phase))
      views.push_back(spec.cols == 0 && spec.fixed == 0 ? View{} : new_view(spec));
    return views;
  }

  // Outputs side by side in one buffer.
  std::vector<View> new_outputs(const Step& step) {
    std::vector<View> views;
    if (step.out.empty()) return views;
    int64_t total = 0;
    for (int v : step.out) total += value(v).cols;
    const View whole = new_view({total, value(step.out[0]).elem});
    int64_t col = 0;
    for (int v : step.out) {
      views.push_back({whole.buffer, col, value(v).cols});
      col += value(v).cols;
    }
    return views;
  }
  const ValueInfo& value(int v) const { return values_[static_cast<size_t>(v)]; }

  void emit_forward(size_t s, bool with_gradient) {
    const Step& step = steps_[s];
    Instruction i;
    i.op = step.op.get();
    for (int v : step.in) i.in.push_back(forward_[static_cast<size_t>(v)]);
    i.out = step.op->in_place() ? i.in : new_outputs(step);
    for (size_t o = 0; o < step.out.size(); ++o)
      forward_[static_cast<size_t>(step.out[o])] = i.out[o];
    for (const BufferSpec& spec : step.op->aux()) i.aux.push_back(new_view(spec));
    aux_[s] = i.aux;
    i.temp = temps(*step.op, Phase::kForward);
    if (with_gradient) {  // the head makes the gradient of its input with the loss
      const int v = step.in[0];
      View d_in;
      if (wants_grad_[static_cast<size_t>(v)]) {
        d_in = new_view({value(v).cols, value(v).elem});
        pending_[static_cast<size_t>(v)].push_back(d_in);
      }
      i.d_in = {d_in};
    }
    plan_.program.push_back(std::move(i));
  }

  bool saved(int v) const {
    const ValueInfo& info = value(v);
    const Op& producer = *steps_[static_cast<size_t>(info.producer)].op;
    if (info.edge || producer.block() < 0) return true;
    if (plan_.options.gradient_checkpointing) return keeps_when_checkpointing(producer);
    return !producer.cheap();
  }
  // Attention's output is kept: recomputing it would cost the S x S part again.
  static bool keeps_when_checkpointing(const Op& op) {
    const Needs needs = op.backward_needs();
    return !needs.outputs.empty();
  }

  View ensure(int v) {
    if (saved(v)) return forward_[static_cast<size_t>(v)];
    if (auto it = recomputed_.find(v); it != recomputed_.end()) return it->second;
    recompute(static_cast<size_t>(value(v).producer));
    return recomputed_.at(v);
  }

  void recompute(size_t s) {
    const Step& step = steps_[s];
    Instruction i;
    i.op = step.op.get();
    i.phase = Phase::kRecompute;
    for (int v : step.in) i.in.push_back(ensure(v));
    i.out = step.op->in_place() ? i.in : new_outputs(step);
    for (size_t o = 0; o < step.out.size(); ++o) recomputed_[step.out[o]] = i.out[o];
    i.aux = aux_[s];  // always kept: they are small; recomputation writes the same bits again
    i.temp = temps(*step.op, Phase::kRecompute);
    plan_.program.push_back(std::move(i));
  }

  // The gradient of a value as one view; invalid when nothing reached it.
  View gradient(int v) {
    std::vector<View>& parts = pending_[static_cast<size_t>(v)];
    while (parts.size() > 1) {
      plan_.helpers.push_back(
          make_add("sum of gradients", value(v).edge ? -1 : 0, value(v).cols, value(v).elem));
      Instruction i;
      i.op = plan_.helpers.back().get();
      i.phase = Phase::kBackward;
      i.d_out = {parts[0]};
      i.residual = {parts[1]};
      i.d_in = {new_view({value(v).cols, value(v).elem})};
      parts.erase(parts.begin());
      parts[0] = i.d_in[0];
      plan_.program.push_back(std::move(i));
    }
    return parts.empty() ? View{} : parts[0];
  }

  void emit_backward(size_t s) {
    const Step& step = steps_[s];
    const Op& op = *step.op;
    bool wanted = op.trains();
    for (int v : step.in) wanted |= wants_grad_[static_cast<size_t>(v)];
    if (!wanted) return;
    Instruction i;
    i.op = &op;
    i.phase = Phase::kBackward;
    bool any = false;
    for (int v : step.out) {
      i.d_out.push_back(gradient(v));
      any |= i.d_out.back().valid();
    }
    if (!any) return;
    if (op.passes_gradient() || op.in_place()) {
      for (size_t k = 0; k < step.in.size(); ++k) {
        const View d = i.d_out[op.in_place() ? k : 0];
        if (wants_grad_[static_cast<size_t>(step.in[k])] && d.valid())
          pending_[static_cast<size_t>(step.in[k])].push_back(d);
      }
      if (op.in_place()) plan_.program.push_back(std::move(i));
      return;
    }
    bind_needs(s, &i);
    for (int v : step.in) bind_input_gradient(op, v, &i);
    i.temp = temps(op, Phase::kBackward);
    plan_.program.push_back(std::move(i));
  }

  void bind_needs(size_t s, Instruction* i) {
    const Step& step = steps_[s];
    const Needs needs = step.op->backward_needs();
    i->in.resize(step.in.size());
    i->out.resize(step.out.size());
    i->aux.resize(step.op->aux().size());
    for (int k : needs.inputs)
      i->in[static_cast<size_t>(k)] = ensure(step.in[static_cast<size_t>(k)]);
    for (int k : needs.outputs)
      i->out[static_cast<size_t>(k)] = ensure(step.out[static_cast<size_t>(k)]);
    for (int k : needs.aux) i->aux[static_cast<size_t>(k)] = aux_[s][static_cast<size_t>(k)];
  }

  void bind_input_gradient(const Op& op, int v, Instruction* i) {
    View residual, d_in;
    if (wants_grad_[static_cast<size_t>(v)]) {
      if (op.adds_residual()) {
        residual = gradient(v);
        pending_[static_cast<size_t>(v)].clear();
      }
      d_in = new_view({value(v).cols, value(v).elem});
      pending_[static_cast<size_t>(v)].push_back(d_in);
    }
    i->residual.push_back(residual);
    i->d_in.push_back(d_in);
  }

  void end_unit(int block) {
    if (!plan_.program.empty()) plan_.units.push_back({plan_.program.size() - 1, block});
  }

  Plan& plan_;
  const std::vector<Step>& steps_;
  const std::vector<ValueInfo>& values_;
  std::vector<View> forward_;               // by value
  std::vector<std::vector<View>> aux_;      // by step
  std::vector<std::vector<View>> pending_;  // gradients that reached a value
  std::vector<bool> wants_grad_;
  std::map<int, View> recomputed_;  // in the block being walked back
};

}  // namespace

void schedule(Plan* plan) { Scheduler(plan).run(); }

}  // namespace loongforge::graph
