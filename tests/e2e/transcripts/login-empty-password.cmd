1 berth login -u me --password-stdin </dev/null
