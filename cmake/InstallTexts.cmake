# Installs what the programs say about themselves: a manual page for each verb, and shell completion.
# BERTH_PROGRAM is the program just built; it needs no store for this.
set(share "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/share")

function(write_text path)
  execute_process(COMMAND ${BERTH_PROGRAM} ${ARGN} OUTPUT_VARIABLE text COMMAND_ERROR_IS_FATAL ANY)
  file(WRITE "${share}/${path}" "${text}")
  message(STATUS "Installing: ${share}/${path}")
endfunction()

execute_process(COMMAND ${BERTH_PROGRAM} man OUTPUT_VARIABLE verbs
                OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
string(REPLACE "\n" ";" verbs "${verbs}")
foreach(verb IN LISTS verbs)
  string(REPLACE " " "-" page "${verb}")
  string(REPLACE " " ";" words "${verb}")
  write_text("man/man1/berth-${page}.1" man ${words})
endforeach()
write_text(bash-completion/completions/berth completion bash)
write_text(zsh/site-functions/_berth completion zsh)
write_text(fish/vendor_completions.d/berth.fish completion fish)
