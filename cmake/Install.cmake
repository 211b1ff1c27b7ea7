# make install: program, library with headers, models and machines, pkg-config and CMake package files. Manual pages and
# completion are installed where they are made, in Manual.cmake.
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/convoy)

install(TARGETS convoy-cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS convoy EXPORT convoy_targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/convoy DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
foreach(folder machines models)
  if(EXISTS ${CMAKE_SOURCE_DIR}/${folder})
    install(DIRECTORY ${folder} DESTINATION ${CMAKE_INSTALL_DATADIR}/convoy)
  endif()
endforeach()

# find_package(convoy) gives convoy::convoy; what a static library stands on is found again on the user's machine.
install(EXPORT convoy_targets NAMESPACE convoy:: DESTINATION ${package_dir})
configure_package_config_file(cmake/convoy-config.cmake.in convoy-config.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(convoy-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/convoy-config.cmake ${CMAKE_BINARY_DIR}/convoy-config-version.cmake
  cmake/FindDNNL.cmake DESTINATION ${package_dir})

# pkg-config: the prefix is relative to the file, so a tree that was moved still works. Libraries are named, not
# required: hwloc's own file asks for what a dynamic link does not need.
file(RELATIVE_PATH convoy_pc_to_prefix /p/${CMAKE_INSTALL_LIBDIR}/pkgconfig /p)
set(convoy_pc_libraries "-lyaml -ljansson -lm")
if(CONVOY_TRAIN)
  string(APPEND convoy_pc_libraries " -ldnnl -lhwloc -lz -larchive -lxxhash -fopenmp -lpthread ${CONVOY_MPI_LINK}")
  if(memkind_FOUND)
    string(APPEND convoy_pc_libraries " -lmemkind")
  endif()
endif()
configure_file(cmake/convoy.pc.in convoy.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/convoy.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
