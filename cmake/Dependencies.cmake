# Every library that Convoy stands on, found in one place; Debian's names are in packages.txt.
list(APPEND CMAKE_MODULE_PATH ${CMAKE_CURRENT_LIST_DIR})
find_package(PkgConfig REQUIRED)
pkg_check_modules(yaml REQUIRED IMPORTED_TARGET yaml-0.1)
pkg_check_modules(jansson REQUIRED IMPORTED_TARGET jansson)
set(CONVOY_LIBRARIES PkgConfig::yaml PkgConfig::jansson m)

add_library(convoy_settings INTERFACE)
target_compile_definitions(convoy_settings INTERFACE _GNU_SOURCE)
target_compile_options(convoy_settings INTERFACE -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes
  -Wpointer-arith -Wcast-qual -Wformat=2 -Wvla -Wundef)
if(CONVOY_WERROR)
  target_compile_options(convoy_settings INTERFACE -Werror)
endif()
if(CONVOY_SANITIZE)
  target_compile_options(convoy_settings INTERFACE -fsanitize=address,undefined -fno-sanitize-recover=all
    -fno-omit-frame-pointer)
  target_link_options(convoy_settings INTERFACE -fsanitize=address,undefined)
  target_compile_definitions(convoy_settings INTERFACE CVY_SANITIZED=1)
endif()
if(CONVOY_FUZZ)
  target_compile_options(convoy_settings INTERFACE -fsanitize=fuzzer-no-link)
  target_link_options(convoy_settings INTERFACE -fsanitize=fuzzer-no-link)
endif()

if(CONVOY_TRAIN)
  find_package(OpenMP REQUIRED COMPONENTS C)
  find_package(Threads REQUIRED)
  find_package(DNNL REQUIRED)
  pkg_check_modules(hwloc REQUIRED IMPORTED_TARGET hwloc)
  pkg_check_modules(zlib REQUIRED IMPORTED_TARGET zlib)
  pkg_check_modules(libarchive REQUIRED IMPORTED_TARGET libarchive)
  pkg_check_modules(xxhash REQUIRED IMPORTED_TARGET libxxhash)
  list(APPEND CONVOY_LIBRARIES DNNL::dnnl OpenMP::OpenMP_C Threads::Threads PkgConfig::hwloc PkgConfig::zlib
    PkgConfig::libarchive PkgConfig::xxhash)
  include(cmake/MPI.cmake)
  target_compile_definitions(convoy_settings INTERFACE CVY_HAVE_TRAIN=1 CVY_HAVE_ONEDNN=1 CVY_HAVE_HWLOC=1
    CVY_HAVE_MPI=${CVY_HAVE_MPI})
  pkg_check_modules(memkind IMPORTED_TARGET memkind) # no machine has to have high-bandwidth memory, nor its library
  if(memkind_FOUND)
    list(APPEND CONVOY_LIBRARIES PkgConfig::memkind)
  endif()
  target_compile_definitions(convoy_settings INTERFACE CVY_HAVE_MEMKIND=$<BOOL:${memkind_FOUND}>)
else()
  target_compile_definitions(convoy_settings INTERFACE CVY_HAVE_TRAIN=0 CVY_HAVE_ONEDNN=0 CVY_HAVE_HWLOC=0
    CVY_HAVE_MEMKIND=0)
endif()
