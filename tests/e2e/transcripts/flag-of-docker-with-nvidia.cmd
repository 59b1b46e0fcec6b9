125 berth run --runtime=kata debian nvidia-smi
