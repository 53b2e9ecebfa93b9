// cxx_runtime.h -- a new-handler that gives up, set and counted.
#ifndef HT_CXX_RUNTIME_H
#define HT_CXX_RUNTIME_H

void ht_runtime_arm(void);
int ht_runtime_calls(void);

#endif
