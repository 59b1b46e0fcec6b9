1 berth login -u me -p x --password-stdin
