// cxx_runtime.h -- sets a new-handler that gives up, and counts its calls.
#ifndef HT_CXX_RUNTIME_H
#define HT_CXX_RUNTIME_H

void ht_runtime_arm(void);
int ht_runtime_calls(void);

#endif
