1 mkdir -p t/sys/module/nvidia t/proc; touch t/SYNTHETIC; echo 570.86.10 >t/sys/module/nvidia/version; berth --driver-root $WORK/t doctor gpu
