// The passes of the planner, in the order they run. Each changes the IR alone, and keeps the meaning of the graph: the
// outputs, the values of the variables afterwards, and the error of the first node in program order that fails. The
// file of a pass states its input, output and invariant.
#pragma once
#include "plan/ir.h"

namespace tapeflow::plan {

void specialise(PlanIR&);
void scalar_replacement(PlanIR&);
void cse_and_views(PlanIR&);
void rematerialise(PlanIR&);
void chain_fusion(PlanIR&);
void elementwise_fusion(PlanIR&);
void recompute(PlanIR&);
void epilogue_fusion(PlanIR&);
void loop_fusion(PlanIR&);
void schedule(PlanIR&);
void memory(PlanIR&);
void emit(PlanIR&);

extern const int most_rematerialisation;

}  // namespace tapeflow::plan
