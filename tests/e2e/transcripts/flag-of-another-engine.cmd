125 berth run --nv debian nvidia-smi
