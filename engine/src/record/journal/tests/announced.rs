//! What journals have announced, independent of their owners.

use super::*;

#[test]
fn announcements_of_all_generators_are_found() {
    let root = run();
    let folder = root.path().join("journal");
    let names: Vec<ShardName> = (0..3)
        .map(|generator| ShardName {
            generator,
            sequence: 7,
        })
        .collect();
    let mut journals = Vec::new();
    for name in &names {
        let (journal, _) = open(root.path(), name.generator);
        let record = game(name.generator, 0, 2);
        play(&journal, &record);
        journal.closing(*name, &[record.id]).unwrap();
        journals.push(journal);
    }
    let all: BTreeSet<ShardName> = names.iter().copied().collect();
    assert_eq!(announced(&folder).unwrap(), all);
    // Of the dead too, and of one whose files are half taken over.
    drop(journals.remove(0));
    assert_eq!(announced(&folder).unwrap(), all);
    fs::rename(
        folder.join("000-000000.journal"),
        folder.join("001-000001.adopted"),
    )
    .unwrap();
    assert_eq!(announced(&folder).unwrap(), all);
    // Void files have no say.
    journals[0].closed(names[1]).unwrap();
    let void = fs::read(folder.join("002-000000.journal")).unwrap();
    journals[1].closed(names[2]).unwrap();
    begin_file(&journals[1]);
    fs::write(folder.join("002-000000.journal"), void).unwrap();
    assert_eq!(announced(&folder).unwrap(), BTreeSet::from([names[0]]));
    // What is damaged may have announced anything.
    let path = current_file(&journals[0]);
    let mut bytes = fs::read(&path).unwrap();
    bytes[30] ^= 1;
    fs::write(&path, bytes).unwrap();
    assert_eq!(announced(&folder).unwrap_err().path, path);
    assert!(announced(&root.path().join("missing")).is_err());
}

#[test]
fn announcements_are_found_while_journals_change_hands() {
    let root = run();
    let folder = root.path().join("journal");
    let name = ShardName {
        generator: 0,
        sequence: 0,
    };
    let (journal, _) = open(root.path(), 0);
    let record = game(0, 0, 3);
    play(&journal, &record);
    journal.closing(name, &[record.id]).unwrap();
    let is_over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let asking = scope.spawn(|| {
            let mut asked = 0;
            while !is_over.load(std::sync::atomic::Ordering::SeqCst) || asked == 0 {
                assert_eq!(announced(&folder).unwrap(), BTreeSet::from([name]));
                asked += 1;
            }
        });
        for counter in 1..20 {
            begin_file(&journal);
            play(&journal, &game(0, counter, 2));
        }
        is_over.store(true, std::sync::atomic::Ordering::SeqCst);
        asking.join().unwrap();
    });
}
