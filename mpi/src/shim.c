// The part of MPI that swath-mpi uses. MPI handles stay in this file, because they are pointers in some libraries and
// integers in others. Every function returns an MPI error code, 0 for success. The caller makes one call at a time.

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static MPI_Comm comm;
static int is_owner;
// Requests since swath_mpi_test last completed all of them.
static MPI_Request *requests;
static MPI_Status *statuses;
static int count, capacity;

int swath_mpi_init(int *is_finalized, int *is_serialized) {
    int code, is_running, level;
    if ((code = MPI_Finalized(is_finalized)) || *is_finalized) return code;
    if ((code = MPI_Initialized(&is_running))) return code;
    is_owner = !is_running;
    code = is_running ? MPI_Query_thread(&level)
                      : MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &level);
    *is_serialized = !code && level >= MPI_THREAD_SERIALIZED;
    return code;
}

int swath_mpi_duplicate(int *rank, int *size) {
    int code = MPI_SUCCESS;
    // MPI_Testall has no communicator. Its errors go to the handler of MPI_COMM_SELF (MPI_COMM_WORLD before MPI 4).
    if (is_owner) {
        code = MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
        if (!code) code = MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    }
    if (!code) code = MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    if (!code) code = MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    if (!code) code = MPI_Comm_rank(comm, rank);
    return code ? code : MPI_Comm_size(comm, size);
}

// Reserves memory for one more request and its status.
static int reserve(void) {
    if (count < capacity) return MPI_SUCCESS;
    if (capacity > 1 << 24) return MPI_ERR_NO_MEM;
    int larger = capacity ? 2 * capacity : 64;
    MPI_Request *r = realloc(requests, larger * sizeof *r);
    if (!r) return MPI_ERR_NO_MEM;
    requests = r;
    MPI_Status *s = realloc(statuses, larger * sizeof *s);
    if (!s) return MPI_ERR_NO_MEM;
    statuses = s;
    capacity = larger;
    return MPI_SUCCESS;
}

int swath_mpi_send(const void *bytes, int length, int to) {
    int code = reserve();
    if (!code) code = MPI_Isend(bytes, length, MPI_BYTE, to, 0, comm, &requests[count]);
    if (!code) count++;
    return code;
}

int swath_mpi_receive(void *bytes, int length, int from) {
    int code = reserve();
    if (!code) code = MPI_Irecv(bytes, length, MPI_BYTE, from, 0, comm, &requests[count]);
    if (!code) count++;
    return code;
}

int swath_mpi_test(int *is_done) {
    int code = MPI_Testall(count, requests, is_done, statuses);
    if (code == MPI_ERR_IN_STATUS)
        for (int i = 0; i < count; i++) {
            int error = statuses[i].MPI_ERROR;
            if (error != MPI_SUCCESS && error != MPI_ERR_PENDING) return error;
        }
    if (!code && *is_done) count = 0;
    return code;
}

// Number of bytes that request i received. Valid after swath_mpi_test has completed all requests, until the next send
// or receive.
int swath_mpi_received(int i, int *bytes) {
    if (i < 0 || i >= capacity) return MPI_ERR_ARG;
    return MPI_Get_count(&statuses[i], MPI_BYTE, bytes);
}

// Unlike a test, leaves the request as it is. A request that does not exist is an error.
int swath_mpi_is_done(int i, int *is_done) {
    if (i < 0 || i >= count) return MPI_ERR_ARG;
    return MPI_Request_get_status(requests[i], is_done, MPI_STATUS_IGNORE);
}

int swath_mpi_finish(void) {
    int code = MPI_Comm_free(&comm);
    free(requests);
    free(statuses);
    requests = NULL;
    statuses = NULL;
    count = capacity = 0;
    return code || !is_owner ? code : MPI_Finalize();
}

int swath_mpi_abort(int code) { return MPI_Abort(MPI_COMM_WORLD, code); }

int swath_mpi_error(int code, char *text, int length) {
    char whole[MPI_MAX_ERROR_STRING + 1] = "";
    int written, failure = MPI_Error_string(code, whole, &written);
    snprintf(text, length, "%s", whole);
    return failure;
}

int swath_mpi_library(char *text, int length) {
    char whole[MPI_MAX_LIBRARY_VERSION_STRING + 1] = "";
    int written, failure = MPI_Get_library_version(whole, &written);
    snprintf(text, length, "%s", whole);
    return failure;
}
