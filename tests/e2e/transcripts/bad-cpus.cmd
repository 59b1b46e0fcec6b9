125 berth run --cpus none debian
