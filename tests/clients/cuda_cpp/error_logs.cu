// The log of failed calls: read from an iterator, into memory and a file, by callbacks.
#include "check.h"
#include <cstring>
#include <string>
#include <vector>
static std::vector<std::string> seen;
static void keep(void *data, cudaLogLevel level, char *message, size_t length) {
    EXPECT(data == &seen && level == cudaLogLevelError && strlen(message) >= length - 1);
    seen.emplace_back(message, length);
}
static void fail() {
    void *p;
    EXPECT(cudaMalloc(&p, size_t(1) << 60) == cudaErrorMemoryAllocation);
    cudaGetLastError();
}
int main() {
    CHECK(cudaFree(0));
    cudaLogsCallbackHandle handle;
    CHECK(cudaLogsRegisterCallback(keep, &seen, &handle));
    cudaLogIterator at;
    CHECK(cudaLogsCurrent(&at, 0));
    char text[8192];
    size_t size = sizeof text;
    CHECK(cudaLogsDumpToMemory(&at, text, &size, 0));
    EXPECT(size == 0);  // nothing yet
    fail();
    EXPECT(seen.size() == 1);
    size = sizeof text;
    CHECK(cudaLogsDumpToMemory(&at, text, &size, 0));
    EXPECT(size > 0 && strlen(text) == size && text[size - 1] == '\n');
    size = sizeof text;
    CHECK(cudaLogsDumpToMemory(&at, text, &size, 0));
    EXPECT(size == 0);  // the iterator has gone on
    fail();
    fail();
    size = sizeof text;
    CHECK(cudaLogsDumpToMemory(&at, text, &size, 0));
    int lines = 0;
    for (char *c = text; *c; c++) lines += *c == '\n';
    EXPECT(lines == 2 && seen.size() == 3);
    char path[] = "/tmp/logXXXXXX";
    EXPECT(mkstemp(path) >= 0);
    CHECK(cudaLogsDumpToFile(nullptr, path, 0));
    FILE *file = fopen(path, "r");
    lines = 0;
    for (int c; (c = fgetc(file)) != EOF;) lines += c == '\n';
    fclose(file);
    remove(path);
    EXPECT(lines >= 3);
    char small[4];
    size = 4;
    EXPECT(cudaLogsDumpToMemory(nullptr, small, &size, 0) == cudaErrorInvalidValue && size == 0);
    EXPECT(cudaLogsCurrent(&at, 1) == cudaErrorInvalidValue);
    CHECK(cudaLogsUnregisterCallback(handle));
    size_t n = seen.size();
    fail();
    EXPECT(seen.size() == n);
    return passed();
}
