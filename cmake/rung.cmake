# Helpers: one static library a folder, one executable a test file.
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
pkg_check_modules(JANSSON REQUIRED IMPORTED_TARGET jansson)
pkg_check_modules(SODIUM REQUIRED IMPORTED_TARGET libsodium)
pkg_check_modules(NETTLE REQUIRED IMPORTED_TARGET nettle)
pkg_check_modules(ZMQ REQUIRED IMPORTED_TARGET libzmq)
pkg_check_modules(YAML REQUIRED IMPORTED_TARGET yaml-0.1)
pkg_check_modules(SQLITE REQUIRED IMPORTED_TARGET sqlite3)
pkg_check_modules(ZLIB REQUIRED IMPORTED_TARGET zlib)

# rung_library(NAME SOURCES a.c b.c LINKS other...): sources and headers see the repository root.
function(rung_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINKS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PUBLIC ${ARG_LINKS})
endfunction()

# Where tests look for their data files; "." in a kit that is carried to another machine.
set(RUNG_TEST_SOURCE_DIR "${PROJECT_SOURCE_DIR}" CACHE STRING "Source folder as the tests see it at run time")

# rung_test(NAME SOURCES test.c LINKS library... [LABEL unit] [TIMEOUT 60]): a cmocka program, run by ctest.
function(rung_test name)
  cmake_parse_arguments(ARG "" "LABEL;TIMEOUT" "SOURCES;LINKS" ${ARGN})
  if(NOT ARG_LABEL)
    set(ARG_LABEL unit)
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 60)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LINKS} cmocka)
  target_compile_definitions(${name} PRIVATE RUNG_SOURCE_DIR="${RUNG_TEST_SOURCE_DIR}")
  add_test(NAME ${name} COMMAND ${name} WORKING_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR})
  set_tests_properties(${name} PROPERTIES LABELS ${ARG_LABEL} TIMEOUT ${ARG_TIMEOUT})
endfunction()

# rung_device_test(NAME [TIMEOUT 300]): the test of that name asks RUNG_TEST_DEVICE which device to use (cpu:0 without). It
# runs once more on the emulated GPU where that is built, and travels with the kit for machines with a GPU.
function(rung_device_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT" "" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  set_property(GLOBAL APPEND PROPERTY RUNG_DEVICE_TESTS ${name})
  if(RUNG_EMULATED_GPU)
    add_test(NAME ${name}_emulated COMMAND ${name} WORKING_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR})
    set_tests_properties(${name}_emulated PROPERTIES LABELS emulated TIMEOUT ${ARG_TIMEOUT}
      ENVIRONMENT "RUNG_TEST_DEVICE=emulated:0;RUNG_PLUGINS=${PROJECT_BINARY_DIR}")
  endif()
endfunction()
