# How tests run on several ranks: as root, in containers, and on fewer cores than ranks, which then yield, not spin.
set(ranks_environment OMP_WAIT_POLICY=passive OMP_NUM_THREADS=1 OMPI_ALLOW_RUN_AS_ROOT=1
  OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_mpi_yield_when_idle=1
  OMPI_MCA_btl_vader_single_copy_mechanism=none OMPI_MCA_btl=self,vader,tcp
  LSAN_OPTIONS=suppressions=${CMAKE_CURRENT_SOURCE_DIR}/lsan.supp)

# add_ranks_test(NAME RANKS COMMAND...): the command as each of RANKS ranks.
function(add_ranks_test name ranks)
  add_test(NAME ${name}-${ranks} COMMAND ${MPIEXEC} -n ${ranks} ${ARGN})
  set_tests_properties(${name}-${ranks} PROPERTIES TIMEOUT 60 PROCESSORS ${ranks} LABELS ranks
    ENVIRONMENT "${ranks_environment}")
endfunction()
