0 berth version --format json
