// Owns the choice and loading of the BLAS and LAPACK library: the only file that knows about providers.
#include "kernels/linalg/blas.h"

#include <dlfcn.h>

#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "base/instruction_set.h"

namespace tapeflow {
namespace {

struct Provider {
  const char* name;
  const char* file;
  const char* prefix;  // of every symbol; Fortran routines also end in an underscore
};
constexpr Provider openblas{"openblas", "libscipy_openblas.so", "scipy_"};
constexpr Provider mkl{"mkl", "libmkl_rt.so.2", ""};

std::string& search_path() {
  static std::string path;
  return path;
}

// The directories that were set, then, seen from this module: its own `lib` (a wheel with the library inside), the
// scipy_openblas32 package beside it, the lib of the Python installation (where the mkl package puts its files); last
// the loader's own path.
std::vector<std::string> candidates(const char* file) {
  std::vector<std::string> paths;
  const std::string& set = search_path();
  for (size_t begin = 0; begin < set.size();) {
    size_t end = set.find(':', begin);
    if (end == std::string::npos) end = set.size();
    if (end > begin) paths.push_back(set.substr(begin, end - begin) + "/" + file);
    begin = end + 1;
  }
  Dl_info module;
  if (dladdr(reinterpret_cast<const void*>(&set_blas_library_path), &module) && module.dli_fname) {
    std::string directory = module.dli_fname;
    size_t slash = directory.rfind('/');
    directory = slash == std::string::npos ? "." : directory.substr(0, slash);
    paths.push_back(directory + "/lib/" + file);
    paths.push_back(directory + "/../../scipy_openblas32/lib/" + file);
    paths.push_back(directory + "/../../../../" + file);
  }
  paths.push_back(file);
  return paths;
}

class Library {
 public:
  Library() {
    const char* wish = std::getenv("TAPEFLOW_BLAS");
    const std::string wanted = wish ? wish : "";
    if (wanted == "none") return;
    if (wanted == "mkl") open(mkl);
    if (!handle_) open(openblas);
    if (handle_) use_one_thread();
  }

  const char* name() const { return handle_ ? provider_.name : "none"; }

  bool has_wide_kernels() const {
    if (instruction_set() != InstructionSet::avx512 || provider_.name != openblas.name) return true;
    void* function = symbol("openblas_get_corename");
    const std::string_view core = function ? reinterpret_cast<const char* (*)()>(function)() : "";
    return core != "Haswell" && core != "Zen";
  }

  void* symbol(const std::string& name) const {
    return handle_ ? dlsym(handle_, (provider_.prefix + name).c_str()) : nullptr;
  }

 private:
  void open(const Provider& provider) {
    provider_ = provider;
    for (const std::string& path : candidates(provider.file)) {
      handle_ = dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL);
      if (handle_) return;
    }
  }

  // Products are split over our own pool, so that two pools never compete for the cores.
  void use_one_thread() const {
    using SetInt = void (*)(int);
    auto call = [this](const char* name) {
      if (void* function = symbol(name)) reinterpret_cast<SetInt>(function)(1);
    };
    call("MKL_Set_Threading_Layer");  // 1 is "sequential"
    call("openblas_set_num_threads");
  }

  Provider provider_ = openblas;
  void* handle_ = nullptr;
};

// Leaked, because kernels may still run while the process exits.
const Library& library() {
  static const Library* instance = new Library;
  return *instance;
}

template <class T> BlasGemm<T> find_gemm(const char* routine) {
  return reinterpret_cast<BlasGemm<T>>(blas_lookup(routine));
}

}  // namespace

void set_blas_library_path(const char* directories) { search_path() = directories; }

const char* blas_provider() { return library().name(); }

bool blas_has_wide_kernels() {
  static const bool wide = library().has_wide_kernels();
  return wide;
}

void* blas_lookup(const char* routine) { return library().symbol(std::string(routine) + "_"); }

template <> BlasGemm<float> blas_gemm() {
  static const auto function = find_gemm<float>("sgemm");
  return function;
}
template <> BlasGemm<double> blas_gemm() {
  static const auto function = find_gemm<double>("dgemm");
  return function;
}
template <> BlasGemm<std::complex<float>> blas_gemm() {
  static const auto function = find_gemm<std::complex<float>>("cgemm");
  return function;
}
template <> BlasGemm<std::complex<double>> blas_gemm() {
  static const auto function = find_gemm<std::complex<double>>("zgemm");
  return function;
}

}  // namespace tapeflow
