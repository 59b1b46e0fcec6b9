# Compiler settings for all targets of the project, and its kinds of targets.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS ON) # TRY is a GNU statement expression
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

include(CheckLinkerFlag)
find_program(BERTH_CCACHE ccache)
if(BERTH_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${BERTH_CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${BERTH_CCACHE})
endif()

add_compile_options(-Wall -Wextra -fno-strict-aliasing)
if(NOT BERTH_UNITY)
  add_compile_options(-Wshadow)
elseif(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  # In a batch, a name in a function may hide one of another file, which no reader of the file sees.
  add_compile_options(-Wshadow=local)
endif()
if(BERTH_WERROR)
  add_compile_options(-Werror)
endif()
add_link_options(-Wl,--as-needed)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # GCC bug 105651: a false report that "literal" + std::string&& overlaps itself.
  add_compile_options(-Wno-restrict)
endif()
if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
  # TRY's temporaries are scoped by its statement expression, which clang reports with -Wextra.
  add_compile_options(-Wno-gnu-statement-expression)
endif()
if(CMAKE_BUILD_TYPE STREQUAL Release)
  # For size, because the resident memory of a program that runs for milliseconds is mostly its code: 3.2 MB
  # of berth-runtime with -O3, 1.8 MB with -Os, in the same time. Code that moves much data sets other
  # options.
  add_compile_options(-Os -ffunction-sections -fdata-sections -fstack-protector-strong)
  add_link_options(-Wl,--gc-sections -Wl,-z,relro -Wl,-z,now -s)
endif()
if(BERTH_SANITIZE)
  # Only lines and functions, which a sanitizer's report names. For variables in a debugger:
  # -DBERTH_DEBUG_INFO=-g.
  set(BERTH_DEBUG_INFO -g1 CACHE STRING "The compiler's option for debug information")
  add_compile_options(${BERTH_DEBUG_INFO})
  # Linking seventy programs with sanitizers writes two gigabytes: 0.6 s each with mold, 3.5 s with GNU ld.
  check_linker_flag(CXX -fuse-ld=mold BERTH_HAS_MOLD)
  if(BERTH_HAS_MOLD)
    add_link_options(-fuse-ld=mold)
  endif()
  # Without the checks for every use of a pointer, which took a fifth of the build and half of its object
  # files: AddressSanitizer reports null too, and the fuzzers, which have all checks, report alignment.
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=undefined
                      -fno-sanitize=null,alignment,object-size,vptr -fno-omit-frame-pointer
                      -D_GLIBCXX_ASSERTIONS)
  add_link_options(-fsanitize=address,undefined)
endif()
if(BERTH_COVERAGE)
  add_compile_options(--coverage)
  add_link_options(--coverage)
endif()
if(BERTH_FUZZ)
  # An error ends the run. RapidJSON begins with an empty stack and computes its end from null.
  add_compile_options(-fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined
                      -fsanitize-ignorelist=${CMAKE_SOURCE_DIR}/cmake/fuzz-ignore.txt
                      -D_GLIBCXX_ASSERTIONS)
  add_link_options(-fsanitize=address,undefined)
endif()

# Without its own separator fmt asks the locale, which would add all of libstdc++'s locales to a static
# program: 0.4 MB. fmt itself is compiled in base/format.cpp.
add_compile_definitions(FMT_STATIC_THOUSANDS_SEPARATOR=',')

# berth_unite(<target>): compiles the sources of a folder in batches. A file has 190 lines on average and
# includes headers of tens of thousands, which a batch parses once. Two files of a folder must then not define
# the same local name; './dev lint clashes' finds such names.
set(BERTH_BATCH 12 CACHE STRING "Sources of a folder that are compiled together")
function(berth_unite target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${BERTH_UNITY} UNITY_BUILD_BATCH_SIZE ${BERTH_BATCH})
endfunction()

# berth_batch(<name> <files…>): compiles these sources of the folder together (paths in it, without '.cpp'),
# for a program that links some of a folder without the libraries that the rest needs. In a folder with
# batches, the other files are compiled alone.
function(berth_batch name)
  foreach(file IN LISTS ARGN)
    if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/${file}.cpp)
      set_source_files_properties(${file}.cpp PROPERTIES UNITY_GROUP ${name})
    else()
      message(FATAL_ERROR "berth_batch: there is no ${CMAKE_CURRENT_SOURCE_DIR}/${file}.cpp")
    endif()
  endforeach()
endfunction()

# berth_library(<name> LINKS <targets…> [ROOMS <folders…>] [WITHOUT <files…>]): all .cpp files of this folder
# and of the named folders below it, except the named files (without '.cpp'); linked as berth_<name>.
function(berth_library name)
  cmake_parse_arguments(ARG "" "" "LINKS;ROOMS;WITHOUT" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  foreach(room IN LISTS ARG_ROOMS)
    file(GLOB more CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${room}/*.cpp)
    list(APPEND sources ${more})
  endforeach()
  foreach(file IN LISTS ARG_WITHOUT)
    list(REMOVE_ITEM sources ${CMAKE_CURRENT_SOURCE_DIR}/${file}.cpp)
  endforeach()
  set(scope PUBLIC)
  if(sources)
    add_library(berth_${name} STATIC ${sources})
  else() # only headers
    add_library(berth_${name} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_include_directories(berth_${name} ${scope} ${CMAKE_SOURCE_DIR}/src)
  set_target_properties(berth_${name} PROPERTIES BERTH_ROOMS "${ARG_ROOMS}")
  berth_unite(berth_${name})
  target_link_libraries(berth_${name} ${scope} ${ARG_LINKS})
endfunction()

# berth_program(<name> [STATIC|STATIC_PIE] LINKS …): src/bin/<name>.cpp. A program that is not static still
# contains libstdc++, so that only libc is resolved at its start.
function(berth_program name)
  cmake_parse_arguments(ARG "STATIC;STATIC_PIE" "" "LINKS" ${ARGN})
  add_executable(${name} ${name}.cpp)
  target_link_libraries(${name} PRIVATE ${ARG_LINKS})
  if(BERTH_STATIC AND ARG_STATIC)
    target_link_options(${name} PRIVATE -static)
  elseif(BERTH_STATIC AND ARG_STATIC_PIE)
    target_link_options(${name} PRIVATE -static-pie)
  elseif(NOT BERTH_SANITIZE AND NOT BERTH_FUZZ)
    target_link_options(${name} PRIVATE -static-libstdc++ -static-libgcc)
  endif()
endfunction()

# berth_bare_program(<name>): src/bin/<name>.cpp without libc, for a process that only waits.
function(berth_bare_program name)
  add_executable(${name} ${name}.cpp)
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR}/src)
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(${name} PRIVATE -Os -ffreestanding -fno-pie -fno-stack-protector -fno-exceptions
                         -fno-rtti -fno-asynchronous-unwind-tables -fno-sanitize=all
                         -fno-profile-arcs -fno-test-coverage)
  target_link_options(${name} PRIVATE -static -nostdlib -nostartfiles -no-pie -fno-sanitize=all
                      -Wl,--build-id=none -Wl,-z,noseparate-code -Wl,-z,norelro)
endfunction()

# berth_unit_test(<folder> LINKS … [WITHOUT <files…>]): all .cpp files of tests/unit/<folder>, and of the
# rooms of this folder's library, except the named files (without '.cpp'), as one GoogleTest program and one
# ctest entry. It writes its tests' results to <build>/gtest for tools/ctest_report.py.
function(berth_unit_test folder)
  cmake_parse_arguments(ARG "" "" "LINKS;WITHOUT" ${ARGN})
  string(REPLACE "/" "_" name unit_${folder})
  string(REPLACE "/" "_" library berth_${folder})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/*.cpp)
  if(TARGET ${library})
    get_target_property(rooms ${library} BERTH_ROOMS)
    foreach(room IN LISTS rooms)
      file(GLOB more CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/${room}/*.cpp)
      list(APPEND sources ${more})
    endforeach()
  endif()
  foreach(file IN LISTS ARG_WITHOUT)
    list(REMOVE_ITEM sources ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/${file}.cpp)
  endforeach()
  if(NOT sources)
    return()
  endif()
  add_executable(${name} ${sources})
  berth_unite(${name})
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/tests)
  target_link_libraries(${name} PRIVATE ${ARG_LINKS} GTest::gtest GTest::gmock GTest::gtest_main)
  add_test(NAME unit/${folder} COMMAND ${BERTH_ROOM} $<TARGET_FILE:${name}>)
  set_tests_properties(unit/${folder} PROPERTIES LABELS unit TIMEOUT 300
    ENVIRONMENT "GTEST_OUTPUT=xml:${CMAKE_BINARY_DIR}/gtest/${name}.xml;GTEST_BRIEF=1")
endfunction()

# berth_fuzzer(<name> LINKS …): tests/fuzz/<name>.cpp as a libFuzzer program.
function(berth_fuzzer name)
  cmake_parse_arguments(ARG "" "" "LINKS" ${ARGN})
  add_executable(fuzz_${name} ${name}.cpp)
  target_include_directories(fuzz_${name} PRIVATE ${CMAKE_SOURCE_DIR}/src)
  target_link_libraries(fuzz_${name} PRIVATE ${ARG_LINKS})
  target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
endfunction()
