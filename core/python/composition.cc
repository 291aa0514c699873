// Compositions as Python callables: a Python function that, while tracing, is called through a hook of the Python side.
#include "python/common.h"

namespace tapeflow::python {
namespace {

struct CompositionObject {
  PyObject_HEAD vectorcallfunc call;
  PyObject* function;
  PyObject *dict, *weak_references;
};
PyObject* function_of(PyObject* self) { return reinterpret_cast<CompositionObject*>(self)->function; }

PyObject* run_composition(PyObject* self, PyObject* const* args, size_t flagged, PyObject* keywords) {
  PyObject* function = function_of(self);
  if (!thread_state().stage) return PyObject_Vectorcall(function, args, flagged, keywords);
  PyObject* hook = registered("stage_composition");
  if (!hook) return PyObject_Vectorcall(function, args, flagged, keywords);
  auto [positional, by_name] = packed_arguments(args, PyVectorcall_NARGS(flagged), keywords);
  if (!positional || !by_name) return nullptr;
  return PyObject_CallFunctionObjArgs(hook, function, positional.get(), by_name.get(), nullptr);
}

PyObject* call_composition(PyObject* self, PyObject* const* args, size_t flagged, PyObject* keywords) {
  ++thread_locals.composition_depth;
  PyObject* result = run_composition(self, args, flagged, keywords);
  --thread_locals.composition_depth;
  if (!result) translate_memory_error();
  return result ? result : run_elsewhere(self, args, PyVectorcall_NARGS(flagged), keywords);
}

// Composition(function)
PyObject* composition_new(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject* function;
  if (!PyArg_ParseTuple(args, "O:Composition", &function)) return nullptr;
  PyObject* self = type->tp_alloc(type, 0);
  if (!self) return nullptr;
  auto* o = reinterpret_cast<CompositionObject*>(self);
  o->call = call_composition;
  o->function = Py_NewRef(function);
  return self;
}
void composition_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  if (reinterpret_cast<CompositionObject*>(self)->weak_references) PyObject_ClearWeakRefs(self);
  Py_CLEAR(reinterpret_cast<CompositionObject*>(self)->function);
  Py_CLEAR(reinterpret_cast<CompositionObject*>(self)->dict);
  type->tp_free(self);
  Py_DECREF(type);
}
int composition_traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(function_of(self));
  Py_VISIT(reinterpret_cast<CompositionObject*>(self)->dict);
  return 0;
}

// What a composition does not know of itself, the function knows: __name__, __doc__, __wrapped__, __defaults__, ...
PyObject* get_attribute(PyObject* self, PyObject* name) {
  const char* text = PyUnicode_AsUTF8(name);
  if (!text) return nullptr;
  if (std::strcmp(text, "__wrapped__") == 0) return Py_NewRef(function_of(self));
  if (std::strcmp(text, "__module__") != 0) {
    PyObject* found = PyObject_GenericGetAttr(self, name);
    if (found || !PyErr_ExceptionMatches(PyExc_AttributeError)) return found;
    PyErr_Clear();
  }
  return PyObject_GetAttr(function_of(self), name);
}
// `help` reads it past `get_attribute`.
PyObject* get_doc(PyObject* self, void*) { return PyObject_GetAttrString(function_of(self), "__doc__"); }
// `inspect` and the serializers of Keras shall find a function.
PyObject* get_class(PyObject*, void*) { return Py_NewRef(reinterpret_cast<PyObject*>(&PyFunction_Type)); }
PyGetSetDef properties[] = {
    {"__class__", get_class, nullptr, nullptr, nullptr},
    {"__doc__", get_doc, nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
PyObject* composition_repr(PyObject* self) { return PyObject_Repr(function_of(self)); }

// Pickles as the public name.
PyObject* reduce(PyObject* self, PyObject*) {
  PyObject* path = registered("public_path");
  Ref place(path ? PyObject_CallOneArg(path, function_of(self)) : nullptr);
  if (!place) return nullptr;
  return Py_BuildValue("O(O)", registered("find_public"), place.get());
}

PyMethodDef methods[] = {{"__reduce__", reduce, METH_NOARGS, nullptr}, {nullptr, nullptr, 0, nullptr}};
PyMemberDef members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(CompositionObject, call), READONLY, nullptr},
    {"__dictoffset__", T_PYSSIZET, offsetof(CompositionObject, dict), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(CompositionObject, weak_references), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};
PyType_Slot slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(composition_new)},
    {Py_tp_dealloc, reinterpret_cast<void*>(composition_dealloc)},
    {Py_tp_traverse, reinterpret_cast<void*>(composition_traverse)},
    {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
    {Py_tp_getattro, reinterpret_cast<void*>(get_attribute)},
    {Py_tp_repr, reinterpret_cast<void*>(composition_repr)},
    {Py_tp_descr_get, reinterpret_cast<void*>(function_get)},
    {Py_tp_methods, methods},
    {Py_tp_getset, properties},
    {Py_tp_members, members},
    {0, nullptr},
};
PyType_Spec spec = {"tapeflow._src._core.Composition", sizeof(CompositionObject), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL, slots};

}  // namespace

void add_composition_type(PyObject* module) {
  Ref type = checked(PyType_FromSpec(&spec));
  if (PyModule_AddObjectRef(module, "Composition", type.get()) < 0) throw_python_error();
}

}  // namespace tapeflow::python
