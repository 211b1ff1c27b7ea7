# How tests run on several ranks: as root, in containers, and on fewer cores than ranks, which then yield, not spin.
# What MPI libraries do not give back lies in plugins that are gone at the end, so no list of suppressions knows it.
set(ranks_environment OMP_WAIT_POLICY=passive OMP_NUM_THREADS=1 OMPI_ALLOW_RUN_AS_ROOT=1
  OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_mpi_yield_when_idle=1
  OMPI_MCA_btl_vader_single_copy_mechanism=none MPIR_CVAR_POLLS_BEFORE_YIELD=1
  ASAN_OPTIONS=detect_leaks=0)

set_tests_properties(comm/test_mpi_launcher PROPERTIES ENVIRONMENT "${ranks_environment}")

# add_ranks_test(NAME RANKS COMMAND...): NAME-RANKS is the command as each of RANKS ranks.
function(add_ranks_test name ranks)
  add_test(NAME ${name}-${ranks} COMMAND ${MPIEXEC} -n ${ranks} ${ARGN})
  set_tests_properties(${name}-${ranks} PROPERTIES TIMEOUT 120 PROCESSORS ${ranks} LABELS ranks
    ENVIRONMENT "${ranks_environment}")
endfunction()

# add_ranks_program(TARGET SOURCES LIBRARIES)
function(add_ranks_program target sources libraries)
  add_executable(${target} ${sources})
  set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR}/include ${CMAKE_SOURCE_DIR}/src
    ${CMAKE_SOURCE_DIR}/tests)
  target_link_libraries(${target} PRIVATE ${libraries} convoy_settings PkgConfig::cmocka)
endfunction()

# tests/<room>/ranks_*.c is a cmocka program that runs as 1, 2, 3 and 4 ranks. Under the sanitizers make check has 3,
# where shares are uneven, and 4, which form grids; 1 and 2 are less of the same: make nightly has them.
foreach(room comm runtime)
  file(GLOB ranks_sources CONFIGURE_DEPENDS ${room}/ranks_*.c)
  foreach(source ${ranks_sources})
    get_filename_component(name ${source} NAME_WE)
    add_ranks_program(${room}_${name} ${source} "convoy;${CONVOY_LIBRARIES}")
    foreach(ranks 1 2 3 4)
      add_ranks_test(${room}/${name} ${ranks} $<TARGET_FILE:${room}_${name}>)
      if(CONVOY_SANITIZE AND ranks LESS 3)
        set_tests_properties(${room}/${name}-${ranks} PROPERTIES LABELS "ranks;nightly")
      endif()
    endforeach()
  endforeach()
endforeach()

# The program on many ranks: one line, read by all, answered by the first.
add_ranks_test(cli/verify 2 $<TARGET_FILE:convoy-cli> verify lenet5 --strategy filter --double --batch 4 --steps 1)

# A program of which one rank fails as no user can ask for, beside the tests that start it: those of faults, below.
add_ranks_program(ranks_faulty ranks/faulty.c "convoy;${CONVOY_LIBRARIES}")

# tests/cli/ranks_*.sh starts the program on several ranks itself. Some mostly wait for time-outs.
set(waiting ranks_leave ranks_start ranks_stop ranks_unlike)
file(GLOB ranks_scripts CONFIGURE_DEPENDS cli/ranks_*.sh)
foreach(script ${ranks_scripts})
  get_filename_component(name ${script} NAME_WE)
  add_test(NAME cli/${name} COMMAND bash ${script} $<TARGET_FILE:convoy-cli> ${MPIEXEC})
  set_tests_properties(cli/${name} PROPERTIES TIMEOUT 300 PROCESSORS 2 LABELS ranks ENVIRONMENT "${ranks_environment}")
  if(name IN_LIST waiting)
    set_tests_properties(cli/${name} PROPERTIES PROCESSORS 1)
  endif()
endforeach()

# Strategies against the serial run, as many as there is time for; make nightly has all. The deep nets would take
# minutes under the sanitizers, where they run no code that the others do not.
set(covers cover)
if(NOT CONVOY_SANITIZE)
  list(APPEND covers cover-zoo)
endif()
foreach(cover ${covers})
  add_test(NAME ranks/${cover} COMMAND bash ${CMAKE_CURRENT_SOURCE_DIR}/ranks/matrix.sh $<TARGET_FILE:convoy-cli>
    ${MPIEXEC} ${CMAKE_CURRENT_SOURCE_DIR}/ranks/${cover}.txt)
  set_tests_properties(ranks/${cover} PROPERTIES TIMEOUT 600 PROCESSORS 2 LABELS ranks
    ENVIRONMENT "${ranks_environment}")
endforeach()

# Where MPICH stands beside the MPI of the build, the communicator is compiled for it, too, and passes the same tests.
# The rest comes from the library's file alone: as a target it would bring its MPI along. Sanitizers see it above.
if(NOT CONVOY_MPI_PREFIX STREQUAL mpi_mpich)
  pkg_check_modules(mpi_mpich QUIET IMPORTED_TARGET mpich)
  find_program(mpiexec_mpich NAMES mpiexec.mpich mpiexec.hydra)
  mark_as_advanced(mpiexec_mpich)
endif()
if(mpi_mpich_FOUND AND mpiexec_mpich AND NOT CONVOY_MPI_PREFIX STREQUAL mpi_mpich AND NOT CONVOY_SANITIZE)
  set(MPIEXEC ${mpiexec_mpich})
  set(libraries ${CONVOY_LIBRARIES})
  list(FILTER libraries EXCLUDE REGEX "mpi_openmpi|MPI_C")
  file(GLOB comm_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/comm/*.c ${CMAKE_SOURCE_DIR}/src/comm/self/*.c
    ${CMAKE_SOURCE_DIR}/src/comm/mpi/*.c)
  file(GLOB ranks_sources CONFIGURE_DEPENDS comm/ranks_*.c)
  add_library(comm_mpich OBJECT ${comm_sources})
  target_include_directories(comm_mpich PRIVATE ${CMAKE_SOURCE_DIR}/include ${CMAKE_SOURCE_DIR}/src)
  target_link_libraries(comm_mpich PRIVATE convoy_settings ${libraries} PkgConfig::mpi_mpich)
  foreach(source ${ranks_sources})
    get_filename_component(name ${source} NAME_WE)
    add_ranks_program(mpich_${name} "${source};$<TARGET_OBJECTS:comm_mpich>"
      "$<TARGET_FILE:convoy>;${libraries};PkgConfig::mpi_mpich")
    add_dependencies(mpich_${name} convoy)
    foreach(ranks 2 3)
      add_ranks_test(comm/${name}-mpich ${ranks} $<TARGET_FILE:mpich_${name}>)
    endforeach()
  endforeach()
endif()
