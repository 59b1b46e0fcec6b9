# How every target of the project is compiled, and the three kinds of target there are.

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

add_compile_options(-Wall -Wextra -Wshadow -fno-strict-aliasing)
if(BERTH_WERROR)
  add_compile_options(-Werror)
endif()
add_link_options(-Wl,--as-needed)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # GCC bug 105651: "literal" + std::string&& is reported as overlapping itself.
  add_compile_options(-Wno-restrict)
endif()
if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
  # TRY's temporaries are scoped by their statement expression; clang says so at -Wextra.
  add_compile_options(-Wno-gnu-statement-expression)
endif()
if(CMAKE_BUILD_TYPE STREQUAL Release)
  # Small, because what is resident of a program that runs for milliseconds is its code: 3.2 MB of
  # berth-runtime with -O3, 1.8 MB with -Os, in the same time. What moves much data says otherwise.
  add_compile_options(-Os -ffunction-sections -fdata-sections -fstack-protector-strong)
  add_link_options(-Wl,--gc-sections -Wl,-z,relro -Wl,-z,now -s)
endif()
if(BERTH_SANITIZE)
  # Lines and functions, which is what a sanitizer's report names. Who wants variables in a debugger says
  # -DBERTH_DEBUG_INFO=-g.
  set(BERTH_DEBUG_INFO -g1 CACHE STRING "The compiler's option for debug information")
  add_compile_options(${BERTH_DEBUG_INFO})
  # Seventy programs with sanitizers are two gigabytes to link: 0.6 s each with mold, 3.5 s with GNU ld.
  check_linker_flag(CXX -fuse-ld=mold BERTH_HAS_MOLD)
  if(BERTH_HAS_MOLD)
    add_link_options(-fuse-ld=mold)
  endif()
  # Without what is looked at for every pointer that is used, which took a fifth of the build and half
  # of its object files: of null AddressSanitizer tells too, of alignment the fuzzers, which have all.
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
  # A finding ends the run. RapidJSON begins with an empty stack, whose end it computes from null.
  add_compile_options(-fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined
                      -fsanitize-ignorelist=${CMAKE_SOURCE_DIR}/cmake/fuzz-ignore.txt
                      -D_GLIBCXX_ASSERTIONS)
  add_link_options(-fsanitize=address,undefined)
endif()

# Without a separator of its own fmt asks the locale, and with that all of libstdc++'s locales are part
# of a static program: 0.4 MB. fmt itself is compiled in base/format.cpp.
add_compile_definitions(FMT_STATIC_THOUSANDS_SEPARATOR=',')

# berth_unite(<target>): compiles the sources of a folder in batches. A file has 190 lines on average and
# reads headers of tens of thousands, which a batch reads once. A name that two files of a folder give to
# something of their own is an error then; './dev lint clashes' finds it.
set(BERTH_BATCH 12 CACHE STRING "Sources of a folder that are compiled together")
function(berth_unite target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${BERTH_UNITY} UNITY_BUILD_BATCH_SIZE ${BERTH_BATCH})
endfunction()

# berth_batch(<name> <files…>): sources of this folder that are compiled together, by their paths in it without
# '.cpp', where a program links some of a folder and not the libraries that the rest needs. What is in no
# batch of a folder that has some is compiled alone.
function(berth_batch name)
  foreach(file IN LISTS ARGN)
    if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/${file}.cpp)
      set_source_files_properties(${file}.cpp PROPERTIES UNITY_GROUP ${name})
    else()
      message(FATAL_ERROR "berth_batch: there is no ${CMAKE_CURRENT_SOURCE_DIR}/${file}.cpp")
    endif()
  endforeach()
endfunction()

# berth_library(<name> LINKS <targets…> [ROOMS <folders…>] [WITHOUT <files…>]): all .cpp files of this folder,
# and of those below it that are named, but those files that are named, without '.cpp'; linked as berth_<name>.
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
  else() # headers alone
    add_library(berth_${name} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_include_directories(berth_${name} ${scope} ${CMAKE_SOURCE_DIR}/src)
  set_target_properties(berth_${name} PROPERTIES BERTH_ROOMS "${ARG_ROOMS}")
  berth_unite(berth_${name})
  target_link_libraries(berth_${name} ${scope} ${ARG_LINKS})
endfunction()

# berth_program(<name> [STATIC|STATIC_PIE] LINKS …): src/bin/<name>.cpp. A program that is not static
# still carries libstdc++ inside, so its start resolves libc alone.
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

# berth_bare_program(<name>): src/bin/<name>.cpp without libc, for a process that only holds on.
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

# berth_unit_test(<folder> LINKS … [WITHOUT <files…>]): every .cpp file of tests/unit/<folder>, and of the rooms
# that the library of this folder has, but those files that are named, without '.cpp', as one GoogleTest program,
# one ctest entry. It writes what each of its tests did into <build>/gtest for tools/ctest_report.py.
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
