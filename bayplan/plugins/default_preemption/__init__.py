"""DefaultPreemption: preempt pods of lower priority to make room for a pod that fits nowhere."""
