"""InterPodAffinity: near the pods a pod needs or likes, away from those it must or would avoid."""
