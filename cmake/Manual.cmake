# Manual pages and completion, made at build time by a tool that reads the program's own tables of commands and options.
# What pages there are is known to the tool alone: a new command needs nothing here. Pages need scdoc.
file(GLOB manual_sources CONFIGURE_DEPENDS src/cli/manual/*.c)
file(GLOB manual_prose CONFIGURE_DEPENDS docs/man/*.scd)
set(manual_scripts ${CMAKE_SOURCE_DIR}/src/cli/manual/make_pages.sh ${CMAKE_SOURCE_DIR}/src/cli/manual/completion.sh)
set(manual_folder ${CMAKE_BINARY_DIR}/manual)

add_executable(convoy-manual ${manual_sources})
set_target_properties(convoy-manual PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tools)
target_link_libraries(convoy-manual PRIVATE convoy-commands)

find_program(SCDOC scdoc)
mark_as_advanced(SCDOC)
if(CMAKE_CROSSCOMPILING)
  message(STATUS "manual pages and completion are not made: the tool that makes them cannot run here")
  return()
endif()
if(SCDOC)
  set(manual_scdoc ${SCDOC})
else()
  message(STATUS "manual pages are not made: scdoc was not found")
  set(manual_scdoc)
endif()
add_custom_command(OUTPUT ${manual_folder}/pages
  COMMAND bash ${CMAKE_SOURCE_DIR}/src/cli/manual/make_pages.sh $<TARGET_FILE:convoy-manual>
    ${CMAKE_SOURCE_DIR}/docs/man ${manual_folder} ${manual_scdoc}
  DEPENDS convoy-manual ${manual_prose} ${manual_scripts}
  COMMENT "Making manual pages and completion" VERBATIM)
add_custom_target(manual ALL DEPENDS ${manual_folder}/pages)

install(FILES ${manual_folder}/completions/convoy DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
if(SCDOC)
  install(DIRECTORY ${manual_folder}/man/ DESTINATION ${CMAKE_INSTALL_MANDIR})
endif()
