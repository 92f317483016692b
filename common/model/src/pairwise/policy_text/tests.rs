use super::*;

#[test]
fn policies_round_trip_through_their_text() {
    for policy in Policy::all() {
        assert_eq!(policy.to_string().parse(), Ok(policy));
        assert_eq!(policy.name().parse(), Ok(policy));
    }
    assert_eq!("jaccard:tau=0.9".parse(), Ok(Policy::jaccard("0.9".parse().unwrap())));
    for (text, written) in [
        ("jaccard:words=5", "jaccard:tau=0.8"),
        ("jaccard:words=3,tau=0.3", "jaccard:tau=0.3,words=3"),
        ("jaccard:words=13", "jaccard:tau=0.8,words=13"),
        ("jaccard:tokens=code", "jaccard:tau=0.8,tokens=code"),
        ("jaccard:tokens=code,words=7", "jaccard:tau=0.8,words=7,tokens=code"),
        ("jaccard:tokens=words", "jaccard:tau=0.8"),
        ("supershingle:tokens=code", "supershingle:equal=2,words=8,tokens=code"),
    ] {
        let policy: Policy = text.parse().unwrap();
        assert_eq!((policy.to_string(), written.parse()), (written.to_owned(), Ok(policy)));
        assert_eq!(policy.reads_code_tokens(), text.contains("code"), "{text}");
    }
    let changed = "copies:site=registrable,across=0.75,within=0.95";
    assert_eq!(
        changed.parse::<Policy>().unwrap().to_string(),
        "copies:text=0.85,within=0.95,across=0.75,site=registrable"
    );
    let all = Policy::BySite {
        across: 380,
        equal: 3,
        agreeing: 300,
        site: Sites::Host,
        tokens: ComparedTokens::Words,
    };
    assert_eq!("by-site:agreeing=300,across=380,site=host,equal=3".parse(), Ok(all));
    assert_eq!(all.to_string(), "by-site:across=380,equal=3,agreeing=300,site=host");
    let all = Policy::Supershingle { equal: 2, words: 5, tokens: ComparedTokens::Words };
    assert_eq!("supershingle:words=5".parse(), Ok(all));
    for (text, written) in [
        ("supershingle:tokens=source", "supershingle:equal=2,words=8,tokens=source"),
        ("projection:tokens=source,agreeing=380", "projection:agreeing=380,tokens=source"),
        ("combined:tokens=source", "combined:equal=2,agreeing=355,tokens=source"),
        ("by-site:tokens=source", "by-site:across=372,equal=2,agreeing=355,site=registrable,tokens=source"),
        ("projection:tokens=words", "projection:agreeing=372"),
    ] {
        let policy: Policy = text.parse().unwrap();
        assert_eq!((policy.to_string(), written.parse()), (written.to_owned(), Ok(policy)));
        assert_eq!(policy.reads_source_tokens(), text.contains("source"), "{text}");
    }
    let all = Policy::Imatch { lexicons: 3, idf_from: 10, idf_to: 90 };
    assert_eq!("imatch:idf-to=90,lexicons=3,idf-from=10".parse(), Ok(all));
    let all = Policy::MultiSimhash { words: 1, lexicons: 10, below: 4 };
    assert_eq!("multi-simhash:below=4,words=1,lexicons=10".parse(), Ok(all));
    assert_eq!(all.to_string(), "multi-simhash:words=1,lexicons=10,below=4");
    // The default of `shared` depends on `lines`.
    for (text, lines, shared) in
        [("", 4, 15), (":lines=2", 2, 25), (":shared=9", 4, 9), (":shared=9,lines=2", 2, 9)]
    {
        assert_eq!(format!("overlap{text}").parse(), Ok(Policy::Overlap { lines, shared }));
    }
}

#[test]
fn the_error_says_what_is_wrong_with_a_policy() {
    let refused = |text: &str| text.parse::<Policy>().unwrap_err().to_string();
    assert!(refused("minhash").contains("there are jaccard, supershingle"));
    for (text, suggested) in
        [("simhsh", "simhash"), ("By_Site:site=host", "by-site"), ("multisimhash", "multi-simhash")]
    {
        let error = refused(text);
        assert!(
            error.contains(&format!("is not a policy (did you mean {suggested}?); there are jaccard")),
            "{error}"
        );
    }
    let error = refused("projection:agreeding=372");
    assert!(error.contains("no parameter \"agreeding\" (did you mean agreeing?); it has agreeing, tokens"));
    for text in ["", "zzz", "nope", "jaccard:x=1", "copies:tau=0.8"] {
        assert!(!refused(text).contains("did you mean"), "{text}");
    }
    assert!(refused("projection:tau=0.8").contains("no parameter \"tau\"; it has agreeing"));
    assert!(
        refused("projection:agreeing=12").contains("cannot be \"12\"; it must be a number from 361 to 384")
    );
    assert!(refused("jaccard:tau=1").contains("a decimal from 0.3"));
    assert!(
        refused("copies:across=0.2")
            .contains("across of the policy copies cannot be \"0.2\"; it must be a decimal from 0.3")
    );
    assert!(refused("combined:equal=2,equal=3").contains("twice"));
    assert!(
        refused("combined:tokens=terms").contains("cannot be \"terms\"; it must be one of words, source")
    );
    assert!(refused("jaccard:tokens=source").contains("cannot be \"source\"; it must be one of words, code"));
    assert!(
        refused("supershingle:tokens=c").contains("cannot be \"c\"; it must be one of words, source, code")
    );
    for policy in Policy::all().filter(|policy| !["jaccard", "supershingle"].contains(&policy.name())) {
        let error = refused(&format!("{}:tokens=code", policy.name()));
        assert!(error.contains("only jaccard and supershingle compare code (tokens=code)"), "{error}");
    }
    assert!(refused("simhash:tokens=source").contains("no parameter \"tokens\"; it has differing"));
    assert!(refused("simhash:differing").contains("cannot be \"\""));
    for empty in ["projection:", "projection:,", "projection:,,agreeing=372", "projection:agreeing=372,"] {
        assert!(refused(empty).contains("a parameter is missing"), "{empty}");
    }
    for value in ["+372", "-372", " 372", "372 ", "3_72", ""] {
        let error = refused(&format!("projection:agreeing={value}"));
        assert!(error.contains("a number from 361 to 384"), "{error}");
    }
    for words in ["2", "14", "+5", ""] {
        assert!(refused(&format!("jaccard:words={words}")).contains("a number from 3 to 13"), "{words}");
    }
    assert!(refused("content:words=5").contains("no parameter \"words\"; it has tau"));
    assert!(refused("jaccard:tau=+0.8").contains("a decimal from 0.3"));
}
