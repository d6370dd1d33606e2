//! Callers: one for each way in which something can be granted, revoked or not granted at all, and each permission.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use assay_test_api::process::run;
use serde_json::{Value, json};

use super::kinds::KINDS;
use super::model::{CallerIdentity, Grant, On, on};
use super::world::{Ask, KindFixture, ORGANIZATION, World, key, merged, text};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    NoKey,
    OtherOrganization,
    NoGrant,
    /// On the object or its whole, to the user.
    Direct,
    /// To a group that contains a group of the user.
    GroupInGroup,
    /// A role that has a role that has it.
    RoleInRole,
    /// On the project.
    Parent,
    /// On all projects, or all secrets.
    AllProjects,
    /// On all of the above, for its type alone.
    Restricted,
    /// On the organization, for projects alone and not for their contents.
    RestrictedToProjects,
    /// On everything, for an unused type.
    RestrictedToAnother,
    /// Everything but this permission.
    AllElse,
    /// It was there and was used.
    Revoked,
    /// An owner acts as a user with this grant.
    Impersonated,
    /// An owner acts as a user without grants.
    ImpersonatedNothing,
    /// A user who does not own the organization acts as its owner.
    Pretender,
    /// An owner of another organization who is invited as an owner, and has not accepted.
    Invited,
    /// A member of this organization and owner of another, by a key of this one and of the other.
    OfBoth,
    OfBothElsewhere,
    /// A former owner of the organization who left and is back, with an old key and a new one.
    KeyFromBefore,
    Returned,
}

/// Whether objects are granted one by one, or the organization is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    Things,
    Organization,
}

pub const PERMISSIONS: [&str; 8] =
    ["create", "read", "update", "delete", "create_acls", "read_acls", "update_acls", "delete_acls"];
/// Those that most of what is served is about, and those that only grants and keys are about.
const OF_THINGS: [&str; 4] = ["create", "read", "update", "delete"];
const OF_GRANTS: [&str; 3] = ["create_acls", "read_acls", "delete_acls"];
const ON_THINGS: [Way; 8] = [
    Way::Direct,
    Way::GroupInGroup,
    Way::RoleInRole,
    Way::Parent,
    Way::AllProjects,
    Way::Restricted,
    Way::RestrictedToAnother,
    Way::Revoked,
];
const ON_THE_ORGANIZATION: [Way; 5] = [Way::Direct, Way::GroupInGroup, Way::RoleInRole, Way::Restricted, Way::Revoked];
/// Nothing is of it here.
const ANOTHER: &str = "project_group";
/// Grants of one request.
const AT_ONCE: usize = 100;
const AS: &str = "x-bt-impersonate-user";

#[derive(Clone, Debug)]
pub struct Caller {
    pub name: String,
    pub way: Way,
    pub level: Level,
    pub permission: &'static str,
    pub headers: Vec<(String, String)>,
    pub identity: CallerIdentity,
    /// Objects that they may delete, by kind, if that has to be granted one by one.
    pub doomed: BTreeMap<&'static str, KindFixture>,
}

/// Grants that are to be made: to whom, in what way.
struct Plan {
    caller: Caller,
    user: String,
    email: String,
}

impl Way {
    /// Returns whether each object has a grant of its own.
    pub fn is_one_by_one(self) -> bool {
        matches!(self, Way::Direct | Way::GroupInGroup | Way::RoleInRole | Way::AllElse | Way::Impersonated)
    }
}

/// Makes all callers with their grants; the second list has the revoked ones.
pub fn callers(world: &World, data: &Path) -> Result<Vec<Caller>> {
    let mut wanted = vec![(Way::NoGrant, Level::Things, "")];
    for permission in OF_THINGS.iter().chain(&OF_GRANTS) {
        // The project that they are on is none of the project's.
        let ways = ON_THINGS.into_iter().filter(|way| *way != Way::Parent || OF_THINGS.contains(permission));
        wanted.extend(ways.map(|way| (way, Level::Things, *permission)));
    }
    for permission in OF_THINGS {
        wanted.push((Way::RestrictedToProjects, Level::Things, permission));
        wanted.extend(ON_THE_ORGANIZATION.map(|way| (way, Level::Organization, permission)));
        wanted.push((Way::AllElse, Level::Things, permission));
    }
    let emails: Vec<String> = (0..wanted.len()).map(|number| format!("caller{number}@example.com")).collect();
    let invited = json!({"invite_users": {"emails": emails, "send_invite_emails": false}});
    let added = world.call("PATCH", "/v1/organization/members", invited)?;
    let users: BTreeMap<String, String> = added["added_users"]
        .as_array()
        .context("users")?
        .iter()
        .map(|user| Ok((text(&user["email"])?, text(&user["id"])?)))
        .collect::<Result<_>>()?;
    let plan = |((way, level, permission), email): (_, String)| Plan {
        user: users[&email].clone(),
        caller: member(way, level, permission),
        email,
    };
    let mut plans: Vec<Plan> = wanted.into_iter().zip(emails).map(plan).collect();
    grant(world, data, &mut plans)?;
    let mut callers = acting(world, &plans)?;
    callers.extend(plans.into_iter().map(|plan| plan.caller));
    callers.push(outsider(world, Way::NoKey, Vec::new(), CallerIdentity::Unknown));
    let other = stranger(data, "globex", "owner@globex.example")?;
    callers.push(outsider(world, Way::OtherOrganization, other, CallerIdentity::Stranger));
    callers.extend(of_several(world, data)?);
    sign_in_every_second(world, &mut callers)?;
    Ok(callers)
}

/// Has every second caller send a session of the console in the place of its key. It opens what the key opens.
fn sign_in_every_second(world: &World, callers: &mut [Caller]) -> Result<()> {
    let with_key = callers.iter_mut().filter(|caller| !matches!(caller.identity, CallerIdentity::Unknown));
    for caller in with_key.skip(1).step_by(2) {
        let (key, others): (Vec<_>, Vec<_>) =
            std::mem::take(&mut caller.headers).into_iter().partition(|(name, _)| name == "authorization");
        let console = ("x-assay-console".to_owned(), "1".to_owned());
        let sends = [key, vec![console.clone()]].concat();
        let signed_in = world.ask(&sends, &Ask::new("POST", "/console/session", Value::Null))?;
        ensure!(signed_in.status == 200, "{}: {} {}", caller.name, signed_in.status, signed_in.text());
        let set = signed_in.header("set-cookie").context("a cookie")?;
        let cookie = ("cookie".to_owned(), set.split(';').next().unwrap_or_default().to_owned());
        caller.headers = [others, vec![cookie, console]].concat();
        caller.name.push_str(" by a session");
    }
    Ok(())
}

/// Returns a user without grants and without a key.
fn member(way: Way, level: Level, permission: &'static str) -> Caller {
    let name = format!("{way:?} {permission} of {level:?}");
    let identity = CallerIdentity::Member(Vec::new());
    Caller { name, way, level, permission, headers: Vec::new(), identity, doomed: BTreeMap::new() }
}

/// Returns a key of the user, made by an administrator: keys cannot be made while acting as another user.
fn key_of(data: &Path, email: &str) -> Result<Vec<(String, String)>> {
    let made = admin(data, &["create-key", email, "--organization", ORGANIZATION, "--user", email])?;
    Ok(key(&text(&made["api_key"])?))
}

fn admin(data: &Path, words: &[&str]) -> Result<Value> {
    let node = data.join("node-1");
    let place = ["--data-dir", node.to_str().context("a path that is text")?];
    run(&[["admin"].as_slice(), words, &place].concat(), &[], "")?.json().with_context(|| words.join(" "))
}

fn outsider(world: &World, way: Way, headers: Vec<(String, String)>, identity: CallerIdentity) -> Caller {
    let name = format!("{way:?} {}", world.number());
    Caller { name, way, level: Level::Things, permission: "", headers, identity, doomed: BTreeMap::new() }
}

/// The owner of another organization.
fn stranger(data: &Path, organization: &str, email: &str) -> Result<Vec<(String, String)>> {
    let made = admin(data, &["create-organization", organization, "--owner", email])?;
    Ok(key(&text(&made["api_key"])?))
}

/// People of two organizations, one who has not accepted so far, and one who left and is back.
fn of_several(world: &World, data: &Path) -> Result<Vec<Caller>> {
    let invite = |email: &str| {
        let invited =
            json!({"invite_users": {"emails": [email], "group_names": ["Owners"], "send_invite_emails": false}});
        world.call("PATCH", "/v1/organization/members", invited)
    };
    let invited = stranger(data, "hooli", "invited@hooli.example")?;
    invite("invited@hooli.example")?;
    let (email, both) = ("both@initech.example", stranger(data, "initech", "both@initech.example")?);
    let plain = json!({"invite_users": {"emails": [email], "send_invite_emails": false}});
    let pending = world.call("PATCH", "/v1/organization/members", plain)?;
    admin(data, &["accept-invitation", &text(&pending["added_users"][0]["id"])?])?;
    let here = key_of(data, email)?;
    let email = "back@example.com";
    invite(email)?;
    let before = key_of(data, email)?;
    let was = world.ask(&before, &Ask::get("/v1/acl/list_org"))?;
    ensure!(was.status == 200, "{} {}", was.status, was.text());
    world.call("PATCH", "/v1/organization/members", json!({"remove_users": {"emails": [email]}}))?;
    let plain = json!({"invite_users": {"emails": [email], "send_invite_emails": false}});
    world.call("PATCH", "/v1/organization/members", plain)?;
    let back = key_of(data, email)?;
    let nothing = || CallerIdentity::Member(Vec::new());
    Ok(vec![
        outsider(world, Way::Invited, invited, CallerIdentity::Stranger),
        outsider(world, Way::OfBothElsewhere, both, CallerIdentity::Stranger),
        outsider(world, Way::OfBoth, here, nothing()),
        outsider(world, Way::KeyFromBefore, before, CallerIdentity::Unknown),
        outsider(world, Way::Returned, back, nothing()),
    ])
}

/// Returns an owner acting as each user with a direct grant, and as one without; and users that may act as no other.
fn acting(world: &World, plans: &[Plan]) -> Result<Vec<Caller>> {
    let mut acting = Vec::new();
    for plan in plans {
        let way = match plan.caller.way {
            Way::Direct => Way::Impersonated,
            Way::NoGrant => Way::ImpersonatedNothing,
            _ => continue,
        };
        let mut caller = plan.caller.clone();
        caller.doomed = doomed(world, &json!({"user_id": plan.user}), None, &mut caller)?;
        caller.way = way;
        caller.headers.clone_from(&world.owner);
        caller.headers.push((AS.into(), plan.user.clone()));
        caller.name = format!("{way:?} {} of {:?}", caller.permission, caller.level);
        acting.push(caller);
    }
    let me = text(&world.call("POST", "/api/self/me", json!({}))?["id"])?;
    for plan in plans.iter().filter(|plan| matches!(plan.caller.way, Way::NoGrant | Way::RoleInRole)) {
        if plan.caller.way == Way::NoGrant
            || (plan.caller.level, plan.caller.permission) == (Level::Organization, "update")
        {
            let mut headers = plan.caller.headers.clone();
            headers.push((AS.into(), me.clone()));
            acting.push(outsider(world, Way::Pretender, headers, CallerIdentity::Pretender));
        }
    }
    Ok(acting)
}

/// One of each kind that has grants of its own, granted in the caller's way.
fn doomed(
    world: &World,
    to: &Value,
    role: Option<&String>,
    caller: &mut Caller,
) -> Result<BTreeMap<&'static str, KindFixture>> {
    let mut doomed = BTreeMap::new();
    if caller.permission != "delete" || caller.level != Level::Things {
        return Ok(doomed);
    }
    let gift = role.map_or_else(|| json!({"permission": "delete"}), |role| json!({"role_id": role}));
    let mut acls = Vec::new();
    for kind in KINDS.iter().filter(|kind| kind.own.is_some()) {
        let fixture = world.fixture(kind)?;
        let own = fixture.own.within[0].clone();
        acls.push(acl(&own, to, &gift));
        remember(caller, &own, "delete", None);
        doomed.insert(kind.name, fixture);
    }
    batch(world, "add_acls", &acls)?;
    Ok(doomed)
}

fn remember(caller: &mut Caller, own: &On, permission: &'static str, only: Option<&'static str>) {
    if let CallerIdentity::Member(grants) = &mut caller.identity {
        grants.push(Grant { on: own.clone(), permission, only });
    }
}

fn acl(own: &On, to: &Value, gift: &Value) -> Value {
    merged(&[&json!({"object_type": own.0, "object_id": own.1}), to, gift])
}

fn batch(world: &World, what: &str, acls: &[Value]) -> Result<()> {
    for part in acls.chunks(AT_ONCE) {
        let answer = world.call("POST", "/v1/acl/batch_update", json!({what: part}))?;
        let done =
            answer["added_acls"].as_array().map_or(0, Vec::len) + answer["removed_acls"].as_array().map_or(0, Vec::len);
        ensure!(done == part.len(), "{done} of {} grants: {answer}", part.len());
    }
    Ok(())
}

/// Returns the objects on which a way grants, and the type it is restricted to.
fn places(world: &World, way: Way, level: Level, permission: &str) -> Vec<(On, Option<&'static str>)> {
    let org = on("organization", &world.org);
    if level == Level::Organization {
        let only = (way == Way::Restricted).then_some("organization");
        return vec![(org, only)];
    }
    let project = on("project", &world.project);
    match way {
        Way::Parent => vec![(project, None)],
        Way::AllProjects => vec![(on("org_project", &world.org), None), (on("org_ai_secret", &world.org), None)],
        Way::Restricted => {
            let within = ["experiment", "dataset", "prompt", "prompt_session", "project_log"];
            let below = ["project", "group", "role", "ai_secret", "org_member"];
            let within = within.map(|only| (project.clone(), Some(only)));
            within.into_iter().chain(below.map(|only| (org.clone(), Some(only)))).collect()
        }
        Way::RestrictedToProjects => vec![(org, Some("project"))],
        Way::RestrictedToAnother => {
            let all = world.one_by_one(permission).into_iter().chain([project, org]);
            all.map(|own| (own, Some(ANOTHER))).collect()
        }
        Way::NoGrant => Vec::new(),
        _ => world.one_by_one(permission).into_iter().map(|own| (own, None)).collect(),
    }
}

/// Makes all groups, roles and grants, on several threads.
fn grant(world: &World, data: &Path, plans: &mut [Plan]) -> Result<()> {
    const THREADS: usize = 12;
    let part = plans.len().div_ceil(THREADS);
    std::thread::scope(|scope| {
        let parts: Vec<_> = plans
            .chunks_mut(part)
            .map(|part| scope.spawn(move || part.iter_mut().try_for_each(|plan| grant_one(world, data, plan))))
            .collect();
        parts.into_iter().try_for_each(|part| part.join().expect("no thread panics"))
    })
}

fn grant_one(world: &World, data: &Path, plan: &mut Plan) -> Result<()> {
    let Plan { caller, user, email } = plan;
    caller.headers = key_of(data, email)?;
    let (way, permission) = (caller.way, caller.permission);
    let to = match way {
        Way::GroupInGroup => json!({"group_id": groups(world, user)?}),
        _ => json!({"user_id": user}),
    };
    let given: Vec<&str> = match way {
        Way::AllElse => PERMISSIONS.into_iter().filter(|other| *other != permission).collect(),
        _ => vec![permission],
    };
    let role = matches!(way, Way::RoleInRole | Way::AllElse).then(|| roles(world, &given)).transpose()?;
    let mut acls = Vec::new();
    for (own, only) in places(world, way, caller.level, permission) {
        let gift = match (&role, only) {
            (Some(role), _) => json!({"role_id": role}),
            (None, Some(only)) => json!({"permission": permission, "restrict_object_type": only}),
            (None, None) => json!({"permission": permission}),
        };
        acls.push(acl(&own, &to, &gift));
        for given in PERMISSIONS.into_iter().filter(|one| given.contains(one)) {
            remember(caller, &own, given, only);
        }
    }
    batch(world, "add_acls", &acls)?;
    if matches!(way, Way::Direct | Way::GroupInGroup | Way::RoleInRole) {
        caller.doomed = doomed(world, &to, role.as_ref(), caller)?;
    }
    if way == Way::Revoked {
        was_open(world, caller)?;
        batch(world, "remove_acls", &acls)?;
        caller.identity = CallerIdentity::Member(Vec::new());
    }
    Ok(())
}

/// The outermost of three groups, the innermost of which has the user.
fn groups(world: &World, user: &str) -> Result<String> {
    let inner = world.make("/v1/group", &json!({"name": world.name("inner"), "member_users": [user]}))?;
    let between = world.make("/v1/group", &json!({"name": world.name("between"), "member_groups": [inner]}))?;
    world.make("/v1/group", &json!({"name": world.name("outer"), "member_groups": [between]}))
}

/// A role that has a role that gives it.
fn roles(world: &World, given: &[&str]) -> Result<String> {
    let given: Vec<Value> = given.iter().map(|permission| json!({"permission": permission})).collect();
    let inner = world.make("/v1/role", &json!({"name": world.name("inner"), "member_permissions": given}))?;
    world.make("/v1/role", &json!({"name": world.name("outer"), "member_roles": [inner]}))
}

/// Checks that a grant that is revoked next is effective: a request that needs it succeeds on both nodes.
fn was_open(world: &World, caller: &Caller) -> Result<()> {
    let things = caller.level == Level::Things;
    let dataset = format!("/v1/dataset/{}", world.id("dataset"));
    let made = |more: Value| merged(&[&json!({"name": world.name("made")}), &more]);
    let nobody = json!({"remove_users": {"emails": ["nobody@example.com"]}});
    for _ in 0..2 {
        let ask = match (caller.permission, things) {
            ("create", true) => Ask::new("POST", "/v1/dataset", made(json!({"project_id": world.project}))),
            ("create", false) => Ask::new("POST", "/v1/group", made(json!({}))),
            ("read", _) => Ask::get(&dataset),
            ("update", true) => Ask::new("PATCH", &dataset, json!({})),
            ("update", false) => Ask::new("POST", "/v1/project_tag", made(json!({"project_id": world.parts}))),
            ("delete", _) => Ask::new("PATCH", "/v1/organization/members", nobody.clone()),
            ("read_acls", _) => Ask::get(format!("/v1/acl?object_type=project&object_id={}", world.parts)),
            ("create_acls", _) => Ask::new("POST", "/v1/acl", new_acl(world)?),
            _ => {
                let there = new_acl(world)?;
                world.call("POST", "/v1/acl", there.clone())?;
                Ask::new("DELETE", "/v1/acl", there)
            }
        };
        let answer = world.ask(&caller.headers, &ask)?;
        ensure!(answer.status == 200, "{}: {ask:?}: {}: {}", caller.name, answer.status, answer.text());
    }
    Ok(())
}

/// A grant on the parts' project that was never made.
pub fn new_acl(world: &World) -> Result<Value> {
    let group = world.make("/v1/group", &json!({"name": world.name("granted")}))?;
    // Whoever may grant has this right, and nobody gives more than they have.
    Ok(json!({
        "object_type": "project", "object_id": world.parts, "group_id": group, "permission": "create_acls",
        "restrict_object_type": "project",
    }))
}
